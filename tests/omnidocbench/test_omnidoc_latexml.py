"""LaTeX tables of OmniDocBench 1.6 by LaTeXML: an option, and nothing that reads a file is converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.omnidocbench import answer_tables
from loupe.benchmarks.omnidocbench.extraction import read_answer_rescuing
from loupe.errors import MissingToolError
from loupe.types import Prediction, Sample

TABLE = (
    r"\begin{tabular}{|l|c|}\hline a & \multicolumn{1}{c}{b} \\ \multirow{2}{*}{$x$} & d \\ & e \\ \hline\end{tabular}"
)
HTML = '<table><tr><td>a</td><td>b</td></tr><tr><td rowspan="2">x</td><td>d</td></tr><tr><td>e</td></tr></table>'


def page(**scoring: str) -> Sample:
    table = {"category_type": "table", "order": 1, "anno_id": 1, "html": HTML}
    info = {"image_path": "p.png", "page_no": 0, "page_attribute": {"language": "english"}}
    truth = {"layout_dets": [table], "page_info": info, "extra": {"relation": []}}
    return Sample(id="p", truth=truth, scoring={"cdm": "off", **scoring})


def teds(sample: Sample) -> float:
    scored = get_benchmark("omnidocbench@1.6").score(sample, Prediction(text=f"{TABLE}\n"))
    return next(each.counts[0] for each in scored.scores if each.measure == "table_teds")


@pytest.mark.parametrize(
    "attack",
    [
        r"\input{FILE}",
        r"^^5cinput{FILE}",
        r"\begin{input}{FILE}\end{input}",
        r"\csname input\endcsname{FILE}",
        r"\let\a=\input \a{FILE}",
        r"\usepackage{FILE}",
        r"\lstinputlisting{FILE}",
        "$$x$$",
    ],
)
def test_a_table_that_could_read_a_file_stays_latex_and_nothing_is_started(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_tables, "run_limited", lambda *_, **__: pytest.fail("LaTeXML was started"))
    (tmp_path / "secret.tex").write_text("secret")
    latex = f"\\begin{{tabular}}{{l}}{attack.replace('FILE', str(tmp_path / 'secret.tex'))}\\end{{tabular}}"
    assert answer_tables.html_of_latex_table(latex) == ""
    [item] = read_answer_rescuing(latex + "\n", answer_tables.html_of_latex_table).items
    assert (item.category, item.fine_category) == ("latex_table", "latex_table")


def test_without_latexml_the_option_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_tables, "latexml_version", lambda: "")
    (tmp_path / "OmniDocBench.json").write_text("[]")
    with pytest.raises(MissingToolError, match="latexmlc is not installed") as refused:
        get_benchmark("omnidocbench@1.6").load(tmp_path, latex_tables="latexml")
    assert refused.value.hint == "apt install latexml"


def test_the_option_scores_a_table_in_latex_as_html(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not answer_tables.latexml_version():
        pytest.skip("latexmlc is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer_tables._cache.cache_clear()
    assert teds(page()) == 0.0
    assert teds(page(latex_tables="latexml")) == 1.0
    monkeypatch.setattr(answer_tables, "run_limited", lambda *_, **__: pytest.fail("LaTeXML was started again"))
    assert teds(page(latex_tables="latexml")) == 1.0
    answer_tables._cache.cache_clear()
