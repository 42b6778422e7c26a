// Whether texts are in English, the language that the encoder was pre-trained on.

/** Common English words, also as people write them in a hurry, that are hardly ever words of other languages (unlike "is", "at", "to", "for"). */
const ENGLISH = new Set(("of by the and you your this that it with from not can what how be but they were would there their which who when about "
  + "just like out up get got has been she his our after before more than then some all don't it's i'm u ur dont cant its new into want need please hello").split(" "));
/** Their share of all words is 33 % in complaints, 14 % in tweets full of slang, 6 % in titles of news and in notes of doctors, and 0 % in German,
 * Spanish, Portuguese, French, Italian, Dutch, Danish and Polish complaints. */
const LEAST_SHARE = 0.02, LEAST_WORDS = 40, CHARACTERS_CHECKED = 500, TEXTS_CHECKED = 1000;

/** Whether hardly any of the words is a common English one; false if there are too few words to tell. @param {string[]} texts */
export function lackEnglish(texts) {
  const words = texts.slice(0, TEXTS_CHECKED).flatMap((text) => wordsOf(text.slice(0, CHARACTERS_CHECKED)));
  return words.length >= LEAST_WORDS && words.filter((word) => ENGLISH.has(word)).length < LEAST_SHARE * words.length;
}

/** Common words of other languages that are rare in English texts and in names (unlike “de” and “la”). */
const OTHERS = new Set("der den zu le il mi tu te es en ich mein meine ist se är ik het que une je está".split(" "));
/** Words of other languages and random letters fall into many short tokens of the encoder: at least MIN_TOKENS per word, with at most MAX_LETTERS
 * each. Beside a word of OTHERS, MIN_TOKENS_BESIDE per word are enough. */
const MIN_TOKENS = 1.5, MAX_LETTERS = 2.6, MIN_TOKENS_BESIDE = 1.2;

/** Whether a text is unlike what the encoder has read: it has no common English word, and its words fall into many tokens.
 * @param {string} text @param {string[]} tokens */
export function isUnlikeEnglish(text, tokens) {
  const words = wordsOf(text), pieces = tokens.map((token) => token.match(/\p{L}/gu)?.length ?? 0).filter(Boolean);
  if (!words.length || words.some((word) => ENGLISH.has(word))) return false;
  const perWord = pieces.length / words.length, areShort = pieces.reduce((sum, n) => sum + n, 0) <= MAX_LETTERS * pieces.length;
  return (perWord >= MIN_TOKENS && areShort) || (perWord >= MIN_TOKENS_BESIDE && words.some((word) => OTHERS.has(word)));
}

const wordsOf = (text) => text.toLowerCase().replaceAll("’", "'").match(/\p{L}+(?:'\p{L}+)*/gu) ?? [];
