"""Rows in the formats of other tools: npy, safetensors, word2vec, TensorBoard, Parquet.

rows.py        what is written: labels, and blocks of rows
arrays.py      npy and safetensors
word2vec.py    text and binary
listings.py    TensorBoard's projector pair, and Parquet
"""
