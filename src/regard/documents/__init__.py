"""Documents: files whose text is translated and whose other content is preserved."""
