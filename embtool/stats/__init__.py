"""What a whole table is like, from one pass over its blocks.

survey.py      the pass: norms, sums, second moments, and marks to find equal rows by
spectrum.py    eigenvalues, effective rank, participation ratio
duplicates.py  rows that are equal, and rows that nearly are
"""
