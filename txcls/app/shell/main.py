"""The script that Streamlit runs at each visit and each click: draws the menu and the selected page."""

from collections.abc import Callable

# Imported before any page is drawn: plotly looks for pandas in sys.modules, where it might be half imported by another
# session's thread.
import pandas  # noqa: F401
import streamlit as st

from txcls.app.components.widgets import register
from txcls.app.lessons import lesson
from txcls.app.menu import CLASSIFY, FORMER_PAGES, MENU, PageInfo
from txcls.app.shell import layout
from txcls.app.shell.limits import BusyError
from txcls.errors import TxclsError
from txcls.figures import colours


def redirect_to(info: PageInfo, added: dict[str, str]) -> Callable[[], None]:
    """A former page: a function that opens another page with the same parameters and the `added` ones."""
    return lambda: st.switch_page(info.path, query_params={**st.query_params.to_dict(), **added})


sections = {
    section: [st.Page(info.path, title=info.title, url_path=info.name, default=info is CLASSIFY) for info in pages]
    for section, pages in MENU.items()
}
former = [
    st.Page(redirect_to(info, added), title=info.title, url_path=name, visibility="hidden")
    for name, (info, added) in FORMER_PAGES.items()
]
page = st.navigation(
    {**sections, "": former},
    position="hidden" if st.context.is_embedded else "top",  # a frame has no room for a menu
)
section = next(n for n, pages in enumerate(MENU.values(), 1) if page.title in {info.title for info in pages})
st.html(
    f"<style>{colours.css()}"
    f"[data-testid=stTopNav] > :nth-child({section}) p {{font-weight: 650; text-decoration: underline}}</style>"
)
st.set_page_config(page_title=f"{page.title} · txcls", page_icon=layout.ICON, layout="wide")
# Browser code of every page: tab stops for what scrolls; Back and Forward by steps of a lesson; the view in a Space's
# address; no translation by the browser, which would break the page.
for name in ("scrollers", "lesson_history", "frame_address", "untranslated"):
    register(name)(key=name)
register("phone_menu")(data={"page": page.title}, key="phone_menu")  # closes the menu, which covers the page on a phone
is_paged = "lesson" in st.query_params or st.query_params.get("mode") == "lecture"
register("early_key")(data={"on": is_paged}, key="early_key")  # keeps a PageDown pressed before the page is drawn
try:
    lesson.arrive(next(info for pages in MENU.values() for info in pages if info.title == page.title))
    page.run()
except BusyError as busy:
    layout.show_busy(busy)
except TxclsError as error:  # such as a page that is not available for a setting of the model
    layout.stop_with(error)
