import examples from "../../../docs/event-examples.json";

/** Event value → a body as it is sent, in full and in minimal. The guide "Events" has the same. */
export const EVENT_EXAMPLES: Readonly<
  Record<string, { readonly full: string; readonly minimal: string }>
> = examples;
