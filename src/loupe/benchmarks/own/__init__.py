"""The folder format for a user's own documents."""
