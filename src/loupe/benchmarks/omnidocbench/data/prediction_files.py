"""What the file with a page's answer may be called, and how it is read.

Protocol: docs/protocols/omnidocbench.md#files.
"""

from __future__ import annotations

from pathlib import PurePosixPath


def cut_extension_like_official(image: str) -> str:
    """The name of an image without its last four characters, whatever they are: `a.jpeg` is `a.`.

    Protocol: docs/protocols/omnidocbench.md#files.
    """
    return image[:-4]


def image_name(image_path: str) -> str:
    """The name of the image in whatever folder the ground truth puts it; upstream's `img_id`."""
    return PurePosixPath(image_path).name


def answer_names(image: str) -> list[str]:
    """The files that upstream tries for a page, in this order; the first that exists counts, even an empty one."""
    stem = cut_extension_like_official(image)
    without_pdf = stem.replace(".pdf", "")
    return [f"{stem}.md", f"{without_pdf}.mmd", f"{without_pdf}.md", f"{image}.md"]


def sample_id(image_path: str) -> str:
    """The id of a page's sample, such that `<id>.md` is one of the files that upstream tries.

    >>> sample_id("images/a.pdf_1.jpg"), sample_id("a.jpeg")
    ('a.pdf_1', 'a.jpeg')
    """
    image = image_name(image_path)
    return cut_extension_like_official(image) if image[-4:-3] == "." else image


def as_read_from_its_file(answer: str) -> str:
    """The answer as upstream gets it: written as UTF-8, without lone surrogates, and read in text mode (#files)."""
    if not answer.isascii():
        answer = answer.encode("utf-8", "replace").decode("utf-8")
    return answer.replace("\r\n", "\n").replace("\r", "\n")
