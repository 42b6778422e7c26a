// Tasks to train on in the browser. All texts except the messages are generated.

import {tr} from "../../picture/translate.js";

/** @typedef {{text: string, label: string, heldOut?: boolean}} Row */
/** The vocabulary of the match reports (txcls/data/generated/who_won.py): past tenses with participles, verbs followed
 * by "to", adverbs, endings and teams.
 * @typedef {{verbs: Record<string, string>, inverse: string[], manners: string[], endings: string[], teams: string[]}} Grammar */
/** What to try after training: if it has settings, a click applies them.
 * @typedef {{action: string, question: string, settings: Record<string, string | number> | null}} Experiment */
/** @typedef {{name: string, title: string, question: string, about: string, experiment: Experiment, text: string, label: string, settings?: object,
 *   rows: (random: () => number) => Row[]}} Task
 *   question: the task in a sentence; about: what is special about it; text: the initial sentence in the visitor's text box, whose class is `label`;
 *   settings: those that differ from the defaults. */

const WORDS = ("apple bread chair cloud door engine field flower glass hand island jacket key lamp mirror night ocean "
  + "paper queen river stone table uncle valley window yellow").split(" ");

/** @param {string} question @returns {Experiment} */
const withoutLayers = (question) => ({action: tr("set layers to 0 and train again."), question, settings: {layers: 0}});
/** @param {string} question @returns {Experiment} */
const withoutPositions = (question) => ({action: tr("set positions to none and train again."), question, settings: {positions: "none"}});

const FEW_WORDS = "lamp river stone key door cloud table glass".split(" ");

/** People and animals, each as singular and plural. */
const NOUNS = ("actor artist baker bird boy cat child/children cook cow dancer doctor dog driver duck farmer friend girl guard horse "
  + "judge king lawyer lion man/men mouse/mice nurse owl painter pilot player poet queen rabbit sailor singer teacher tiger "
  + "visitor waiter woman/women").split(" ").map((noun) => noun.split("/")).map(([singular, plural = `${singular}s`]) => [singular, plural]);
const PREPOSITIONS = "near behind beside".split(" "), PAST_TENSES = "saw met followed heard helped liked".split(" ");

/** Messages to learn from in the task "few", of all topics together. */
const FEW_MESSAGES = 200;

/** @param {{messages: Record<string, {train: string[], test: string[]}>, grammar: Grammar}} data messages by topic
 * @returns {Task[]} */
export function tasksOf({messages, grammar}) {
  return [
    {
      name: "messages", title: tr("Messages on six topics"), question: tr("Which of six topics is the message about?"),
      about: tr("The class depends on the words, not on their order. There are few texts, so many words in the held-out texts are unknown to the model."),
      experiment: withoutLayers(tr("Is attention needed here?")),
      text: "Hand luggage only this time, promise.", label: "travel",
      rows: () => messagesOf(messages, Infinity),
    },
    {
      name: "few", title: tr("200 messages on six topics"), question: tr("Which of six topics is the message about?"),
      about: tr("The messages to learn from are few enough that it matters what a model has read before."),
      experiment: {action: tr("start from the pre-trained encoder and train again."), question: tr("What does pre-training gain?"), settings: {start: "encoder"}},
      text: "Hand luggage only this time, promise.", label: "travel",
      rows: () => messagesOf(messages, FEW_MESSAGES),
    },
    {
      name: "winner", title: tr("Who won the match?"), question: tr("Which team won, according to the report?"),
      about: tr("The same words in another order have another answer."),
      experiment: withoutPositions(tr("Can it still tell who won?")),
      text: "City were beaten by County yesterday.", label: "County",
      rows: (random) => Array.from({length: 1200}, () => matchReports(grammar, random)).flat(),
    },
    {
      name: "agreement", title: tr("Is or are?"), question: tr("Which word fits the blank, “is” or “are”?"),
      about: tr("The linear model does well here too: it reads pairs of neighbouring words."),
      experiment: withoutPositions(tr("Does it still find the subject?")),
      text: "The children near the dog ___", label: "are",
      rows: (random) => Array.from({length: 3000}, () => unfinishedSentence(random)),
    },
    {
      name: "repeated", title: tr("Is a word repeated?"), question: tr("Does one of the five words occur twice?"),
      about: tr("An average of word vectors does not tell; attention compares tokens. Positions are not needed, and the model learns faster without them."),
      settings: {positions: "none"},
      experiment: withoutLayers(tr("Can an average of word vectors compare words?")),
      text: "river stone lamp river key", label: "repeated",
      rows: (random) => Array.from({length: 4000}, () => {
        const words = sample(FEW_WORDS, 5, random), isRepeated = random() < 0.5;
        if (isRepeated) words[0] = words[1 + Math.floor(random() * 4)];
        return {text: sample(words, 5, random).join(" "), label: isRepeated ? "repeated" : "all different"};
      }),
    },
    {
      name: "ends", title: tr("Same word at both ends?"), question: tr("Is the first word also the last?"),
      about: tr("One of the six words occurs twice, at both ends or elsewhere. Words and places have to be compared."),
      experiment: withoutPositions(tr("Can it still tell where the word is?")),
      text: "stone lamp river key door stone", label: "same ends",
      rows: (random) => Array.from({length: 2400}, () => {
        const words = sample(WORDS, 5, random), hasSameEnds = random() < 0.5;
        if (hasSameEnds) return {text: [...words, words[0]].join(" "), label: "same ends"};
        const index = 1 + Math.floor(random() * 4);
        words.splice(index, 0, words[Math.floor(random() * 5)]);
        if (words[0] === words[5]) [words[4], words[5]] = [words[5], words[4]];
        return {text: words.join(" "), label: "different ends"};
      }),
    },
    {
      name: "majority", title: tr("Red or blue?"), question: tr("Are more of the words “red” or “blue”?"),
      about: tr("Counting needs neither attention nor positions."),
      experiment: withoutLayers(tr("Does counting need attention?")),
      text: "red blue lamp red blue red stone", label: "red",
      rows: (random) => Array.from({length: 1200}, () => {
        const n = 3 + 2 * Math.floor(random() * 2), red = Math.floor(random() * (n + 1));
        const words = [...Array(red).fill("red"), ...Array(n - red).fill("blue"), ...sample(WORDS, 7 - n, random)];
        return {text: sample(words, 7, random).join(" "), label: red > n - red ? "red" : "blue"};
      }),
    },
  ];
}

/** The messages: at most `most` to learn from, as many of each topic as possible.
 * @param {Record<string, {train: string[], test: string[]}>} messages @param {number} most @returns {Row[]} */
function messagesOf(messages, most) {
  const topics = Object.entries(messages);
  return topics.flatMap(([label, {train, test}], n) => [
    ...train.slice(0, Math.floor((most + n) / topics.length)).map((text) => ({text, label, heldOut: false})),
    ...test.map((text) => ({text, label, heldOut: true})),
  ]);
}

/** A match report, and the same report with the two teams swapped, from a small grammar with four teams and one clause. */
function matchReports({verbs, inverse, manners, endings, teams}, random) {
  const pick = (values) => values[Math.floor(random() * values.length)];
  const [first, second, third] = sample(teams.slice(0, 4), 3, random), verb = pick(Object.keys(verbs)), lost = pick(inverse);
  const manner = random() < 0.25 ? `${pick(manners)} ` : "", ending = random() < 0.4 ? ` ${pick(endings)}` : "";
  const clause = random() < 0.4 ? `, who ${pick([`${pick(Object.keys(verbs))}`, `${pick(inverse)} to`])} ${third} last week,` : "";
  const form = pick([
    (a, b) => [`${a}${clause} ${manner}${verb} ${b}`, a], (a, b) => [`${a}${clause} ${manner}${lost} to ${b}`, b],
    (a, b) => [`${a}${clause} were ${manner}${verbs[verb]} by ${b}`, b],
  ]);
  const heldOut = random() < 0.15; // both reports of a pair are in the same part
  return [form(first, second), form(second, first)].map(([text, label]) => ({text: `${text}${ending}.`, label, heldOut}));
}

/** The start of a sentence, up to a verb that agrees with the subject in number; in three quarters of the sentences,
 * another noun has the other number. */
function unfinishedSentence(random) {
  const pick = (values) => values[Math.floor(random() * values.length)];
  const isPlural = random() < 0.5, numbers = [isPlural, random() < 0.75 ? !isPlural : isPlural, random() < 0.5];
  const [subject, other, third] = sample(NOUNS, 3, random).map((noun, n) => `the ${noun[Number(numbers[n])]}`);
  const [opening, second] = random() < 0.5 ? ["", other] : [`${pick(PREPOSITIONS)} ${other}, `, third];
  const after = [`${pick(PREPOSITIONS)} ${second} `, `that ${pick(PAST_TENSES)} ${second} `, `that ${second} ${pick(PAST_TENSES)} `];
  const text = `${opening}${subject} ${pick(opening ? ["", ...after] : after)}___`;
  return {text: text[0].toUpperCase() + text.slice(1), label: isPlural ? "are" : "is"};
}

/** n values drawn at random without replacement. @template V @param {V[]} values @returns {V[]} */
function sample(values, n, random) {
  const left = [...values];
  return Array.from({length: n}, () => left.splice(Math.floor(random() * left.length), 1)[0]);
}
