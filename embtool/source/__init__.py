"""Where a model's files are: the Hub, a folder, a file, the offline model."""
