"""Parts that several engine kinds share: worker processes, image preparation, reading order, finding endpoints."""
