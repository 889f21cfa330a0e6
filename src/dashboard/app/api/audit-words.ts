export { ACTION_WORDS, phraseOf } from "../../../auth/audit-words.ts";
