"""What every room stands on: errors that teach, files that are whole or absent."""
