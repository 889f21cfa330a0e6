export { ACTION_WORDS, entryWords, phraseOf, sentenceOf } from "../../../audit/words.ts";
