export { ACTION_WORDS, entryWords, phraseOf } from "../../../audit/words.ts";
