"""Texts that could break tokenizers: words with quotes, entities, tags, control characters, surrogates and scripts."""

from hypothesis import strategies as st

LINES = (
    "'' ' `` ` ''' “ ” « » ‘ ’ & &amp; &#39; #39; &lt; &gt; &lt;b&gt; &#x1F600; &#0; &bogus;",
    "<b> </a> <!-- --> < > <3 <o:p> <script>alert(1)</script> <pad> <unk> <mask> <cls> word Word x",
    r"http://a.b/c?d=e. https:// www.x.org \ \n ... .. . , : ; -- - ( ) [ }",
    "cannot gonna can't I'll 'tis d'ye more'n U.S. Inc. 3.5. end. a.b.com. $5 50%",
    "İ ΑΣ Σ ß ǅ e\u0301 \u0301\u0323 \u1112\u1161\u11ab नमस्ते שלום مرحبا 日本語 🎉 👩‍👩‍👧 🇫🇷",
)
PIECES = (
    *(piece for line in LINES for piece in line.split()),
    *(" ", "  ", "\n", "\t", "\u00a0", "\u2028", "\x1c", "\x00", "\ufeff", "\u200b", "\u200d", "\ud800", "\udfff"),
    *('"', '"""', " #39;", " quot;", " amp;", '<a href="x y">', "<!-- c -->", "a<b and c>d"),
)


texts = st.one_of(
    st.text(alphabet=st.characters(), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join),
)
