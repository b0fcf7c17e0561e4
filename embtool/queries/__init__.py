"""Questions that a table and a vocabulary answer together: a room each, records out."""
