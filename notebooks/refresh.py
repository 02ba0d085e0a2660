"""Run notebooks and save them clean: `python notebooks/refresh.py notebooks/01_first_steps.ipynb ...`.

What is saved are cells, tags and outputs; whatever changes from run to run without being a result is left out.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL_SECONDS = 300
LIVE, STILL = "application/vnd.jupyter.widget-view+json", "text/html"
"""A widget as a kernel that runs shows it, and the form beside it that needs none."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def refresh(path: Path) -> None:
    """Run every cell in a fresh kernel, in the notebook's folder, and save it with its outputs.

    Raises where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    there = {"metadata": {"path": str(path.parent)}}
    options = {"timeout": CELL_SECONDS, "store_widget_state": False, "record_timing": False}
    NotebookClient(notebook, resources=there, **options).execute()
    path.write_text(text(tidy(notebook)), encoding="utf-8")


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without volatile metadata and live widgets; pieces of one output stream in a row are joined.

    A live widget goes where a still form stands beside it. One without stays, and the tests refuse the notebook.
    """
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def text(notebook: nbformat.NotebookNode) -> str:
    """The notebook as its file holds it."""
    return nbformat.writes(notebook) + "\n"


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    kept: list[nbformat.NotebookNode] = []
    for output in outputs:
        if "metadata" in output:
            output.metadata = nbformat.from_dict({})
        if STILL in output.get("data", {}):
            output.data.pop(LIVE, None)
        last = kept[-1] if kept else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last.text += output.text
        else:
            kept.append(output)
    return kept


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name))
