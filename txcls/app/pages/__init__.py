"""The pages in the menu's order: each is one file in this folder, under its name in the address."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What the menu and the other pages need to know about a page.

    Attributes:
        name: of its file and in the address; the first page's address is `/`.
        title: in the menu and the browser's tab.
        question: what the page answers: its heading, and the label of links to it.
    """

    name: str
    title: str
    question: str

    @property
    def path(self) -> str:
        """Its file, relative to `streamlit_app.py`."""
        return f"txcls/app/pages/{self.name}.py"


PAGES = (
    CLASSIFY := PageInfo("classify", "Classify", "What is this text about?"),
    TOKENS := PageInfo("tokens", "Tokens", "How does a text become numbers?"),
    STEPS := PageInfo("steps", "Step by step", "What happens to this text, step by step?"),
    ATTENTION := PageInfo("attention", "Attention", "Where does each head look?"),
    SWITCHBOARD := PageInfo("switchboard", "Switchboard", "What is each part worth?"),
    EXPLANATION := PageInfo("explanation", "Explanation?", "Is attention an explanation?"),
    LENS := PageInfo("lens", "Class lens", "Where does the decision form?"),
    POSITIONS := PageInfo("positions", "Positions", "How does word order get in?"),
    WHAT_IF := PageInfo("whatif", "What if", "What if the text were a little different?"),
    NEIGHBOURHOOD := PageInfo("neighbourhood", "Neighbourhood", "What does the model take to be alike?"),
    LANGUAGE := PageInfo("language", "Language model", "What is missing, and what comes next?"),
)
