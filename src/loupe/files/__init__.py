"""The only code that writes files: nothing below a folder is reached through a link, and a file is whole or absent."""
