export {
  ACTION_WORDS,
  entryWords,
  phraseOf,
  sentenceOf,
  TOKEN_KINDS,
} from "../../../audit/words.ts";
