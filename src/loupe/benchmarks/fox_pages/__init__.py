"""What the benchmark `fox` is made of: its files, its page scores, and the compression study of DeepSeek-OCR."""
