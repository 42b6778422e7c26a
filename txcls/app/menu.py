"""The menu: the pages in order, each with its title and question."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What the menu and the other pages need to know about a page.

    Attributes:
        name: name of its file and of its URL path; the first page's path is `/`.
        title: its title in the menu, in the browser's tab and above its question.
        question: the question that the page answers, and the label of links to it.
    """

    name: str
    title: str
    question: str

    @property
    def path(self) -> str:
        """Path of its file."""
        return str(Path(__file__).parent / "pages" / f"{self.name}.py")


CLASSIFY = PageInfo("classify", "Classify", "Which class does this text belong to?")
LESSONS = PageInfo("lessons", "Lessons", "What would you like to teach or learn?")
PLAYGROUND = PageInfo("playground", "Playground", "How does a Transformer learn?")
TOKENS = PageInfo("tokens", "Tokens", "How does a text become numbers?")
STEPS = PageInfo("steps", "Step by step", "What happens to this text, step by step?")
ATTENTION = PageInfo("attention", "Attention", "What does each head attend to?")
POSITIONS = PageInfo("positions", "Positions", "How does the model know word order?")
HEADS = PageInfo("heads", "Heads", "What is each head worth?")
WHAT_IF = PageInfo("whatif", "What if", "What if the text were slightly different?")
EXPLANATION = PageInfo("explanation", "Explanation", "Is attention an explanation?")
FILM = PageInfo("film", "Training film", "How did training change the answer?")
LANGUAGE = PageInfo("language", "Language model", "Which token does a language model expect?")
REPORT = PageInfo("report", "Report", "How good is the classifier, and where does it fail?")

MENU = {
    "Try": (CLASSIFY, PLAYGROUND, LESSONS),
    "Inside": (TOKENS, STEPS, ATTENTION, POSITIONS),
    "Experiments": (HEADS, WHAT_IF, EXPLANATION, FILM),
    "Language model": (LANGUAGE,),
    "Report": (REPORT,),
}
"""The sections of the menu; the first page is the home page."""
PAGES = tuple(page for section in MENU.values() for page in section if page not in (LESSONS, PLAYGROUND))
"""The pages that show a model, in menu order."""
FORMER_PAGES: dict[str, tuple[PageInfo, dict[str, str]]] = {
    "switchboard": (HEADS, {}),
    "atlas": (HEADS, {}),
    "lens": (STEPS, {"step": "lens"}),
    "train": (PLAYGROUND, {}),
    "batch": (PLAYGROUND, {}),
    "neighbourhood": (TOKENS, {"section": "similar"}),
}
"""Names of former pages; for each, the page that replaces it, and the parameters that show the same content there."""
