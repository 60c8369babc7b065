"""Check the calls of the detector `pp_doclayout_v3` against the packages themselves, with random weights.

Needs the extra `layout` (and no network): PP-DocLayoutV3 is made with its own configuration and the 25 labels, written
to a temporary folder, loaded as a run loads it, and shown a page. What it finds means nothing; that it is found, does.

    python script/check_layout_model.py PAGE.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

from loupe.features.layout.detectors import DetectorOptions, load_detector
from loupe.features.layout.filtering import LABELS, keep_areas, regions


def main() -> None:
    """Print what was loaded, and how many areas and regions came of the page."""
    import torch
    import transformers

    torch.manual_seed(0)
    labels = dict(enumerate(LABELS))
    config = transformers.PPDocLayoutV3Config(id2label=labels, label2id={label: n for n, label in labels.items()})
    page = Image.open(sys.argv[1]).convert("RGB")
    with tempfile.TemporaryDirectory() as folder:
        transformers.PPDocLayoutV3ForObjectDetection(config).save_pretrained(Path(folder))
        transformers.PPDocLayoutV3ImageProcessor().save_pretrained(Path(folder))
        detector = load_detector("pp_doclayout_v3", DetectorOptions(model=folder, least_score=0.2))
        detections, again = detector.detect([page, page.resize((page.width // 2, page.height // 2))])
    found = regions(keep_areas(detections, *page.size, least_score=0.2), *page.size)
    inside = all(0 <= side <= 1000 for region in found for side in region.box)
    print(dict(detector.facts), f"{len(detections)} detections, {len(found)} regions, all on the page: {inside}")
    assert detections and again and inside


if __name__ == "__main__":
    main()
