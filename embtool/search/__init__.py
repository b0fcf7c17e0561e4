"""Nearest rows: one pass over float32 blocks, near ties settled in float64 from the stored rows.

threads.py     one thread for each part of a table
blocks.py      a pass over a table: norms, which rows may rank, blocks of a useful height
candidates.py  the rows that may be among the k best, bounded however many tie
scan.py        a pass that scores every row and keeps the candidates
nearest.py     neighbours by cosine, dot product or distance
analogy.py     3CosAdd, 3CosMul and PairDirection, for one question or thousands
rank.py        how near one row is to another; cosines of rows with rows
"""
