"""What the kinds around vendors' own packages share (`glmocr`, `paddleocr_vl`, `mineru`, `deepseek_ocr`).

Each package runs in worker processes. Its network ends at this machine while pages are read; docs/engines/sdk.md.
"""
