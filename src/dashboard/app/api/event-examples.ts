import examples from "../../../docs/event-examples.json";

/**
 * Maps an event name to a sample webhook body in the payload modes `full` and `minimal`. The guide "Events"
 * shows the same samples.
 */
export const EVENT_EXAMPLES: Readonly<
  Record<string, { readonly full: string; readonly minimal: string }>
> = examples;
