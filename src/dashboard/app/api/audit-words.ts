export { ACTION_WORDS, entryWords, phraseOf } from "../../../auth/audit-words.ts";
