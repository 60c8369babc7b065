"""A plain Zhang-Shasha, read off the paper, to compare the fast version with; and random HTML tables to do it on."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import html as lxml_html


@dataclass
class Node:
    label: tuple[str, int, int]
    tokens: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


def textbook_teds(prediction: str, reference: str, *, structure_only: bool = False) -> float:
    """TEDS by the textbook, of two full pages with a table each."""
    tables = [lxml_html.fromstring(page).find("body/table") for page in (prediction, reference)]
    trees = [tree(table, structure_only) for table in tables]
    elements = max(len(table.xpath(".//*")) for table in tables)
    return 1.0 - zhang_shasha(*trees) / elements


def tree(element: lxml_html.HtmlElement, structure_only: bool) -> Node:
    if element.tag == "td":
        spans = int(element.get("colspan", "1")), int(element.get("rowspan", "1"))
        return Node(("td", *spans), [] if structure_only else tokens(element)[1:-1])
    return Node((element.tag, 0, 0), [], [tree(child, structure_only) for child in element])


def tokens(element: lxml_html.HtmlElement) -> list[str]:
    found = [f"<{element.tag}>", *(element.text or "")]
    for child in element:
        found += tokens(child)
    if element.tag != "unk":
        found.append(f"</{element.tag}>")
    return found + (list(element.tail or "") if element.tag != "td" else [])


def zhang_shasha(first: Node, second: Node) -> float:
    nodes_1, leftmost_1, key_roots_1 = numbered(first)
    nodes_2, leftmost_2, key_roots_2 = numbered(second)
    distance = [[0.0] * len(nodes_2) for _ in nodes_1]
    for root_1 in key_roots_1:
        for root_2 in key_roots_2:
            left_1, left_2 = leftmost_1[root_1], leftmost_2[root_2]
            rows, columns = root_1 - left_1 + 2, root_2 - left_2 + 2
            forest = [[float(i + j) for j in range(columns)] for i in range(rows)]
            for i in range(1, rows):
                for j in range(1, columns):
                    one, two = left_1 + i - 1, left_2 + j - 1
                    remove, insert = forest[i - 1][j] + 1, forest[i][j - 1] + 1
                    if leftmost_1[one] == left_1 and leftmost_2[two] == left_2:
                        change = forest[i - 1][j - 1] + rename(nodes_1[one], nodes_2[two])
                        forest[i][j] = distance[one][two] = min(remove, insert, change)
                    else:
                        before = forest[leftmost_1[one] - left_1][leftmost_2[two] - left_2]
                        forest[i][j] = min(remove, insert, before + distance[one][two])
    return distance[-1][-1]


def numbered(root: Node) -> tuple[list[Node], list[int], list[int]]:
    """The nodes in postorder, the leftmost leaf of each, and the key roots."""
    nodes: list[Node] = []
    leftmost: list[int] = []

    def visit(node: Node) -> int:
        starts = [visit(child) for child in node.children]
        nodes.append(node)
        leftmost.append(starts[0] if starts else len(nodes) - 1)
        return leftmost[-1]

    visit(root)
    return nodes, leftmost, sorted({start: node for node, start in enumerate(leftmost)}.values())


def rename(one: Node, two: Node) -> float:
    if one.label != two.label:
        return 1.0
    longest = max(len(one.tokens), len(two.tokens))
    return levenshtein(one.tokens, two.tokens) / longest if longest else 0.0


def levenshtein(one: list[str], two: list[str]) -> int:
    row = list(range(len(two) + 1))
    for i, token in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(two, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (token != other))
    return row[-1]
