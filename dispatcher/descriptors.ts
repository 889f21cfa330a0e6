import { LIMITS } from "./delivery/limits.ts";

/** Descriptors for the stores, the resolver, metrics, logs and whatever is opened for a moment. */
const OWN = 128;
/** Connections that idle, for each request that may be under way, where descriptors are few. */
const IDLE_SHARE = 0.5;
/** As many as there are actors: a subscription that goes on finds its connection open. */
const MAX_IDLE = LIMITS.actors;
/** With fewer requests at once for each of both kinds of hosts a dispatcher is of no use. */
const MIN_REQUESTS = 32;

/** How many descriptors a dispatcher needs for so many requests of each kind and what idles beside them. */
function needed(requests: number): number {
  return OWN + Math.ceil(2 * requests * (1 + IDLE_SHARE));
}

export const WANTED_DESCRIPTORS = needed(LIMITS.requests);
export const MIN_DESCRIPTORS = needed(MIN_REQUESTS);

/** What a process with so many descriptors may have under way; undefined if they are too few to begin with. */
export function budgetOf(descriptors: number) {
  if (descriptors < MIN_DESCRIPTORS) return undefined;
  const affordable = Math.floor((descriptors - OWN) / (2 * (1 + IDLE_SHARE)));
  const requests = Math.min(LIMITS.requests, affordable);
  // What idles may use what no request can.
  const spare = descriptors - OWN - 2 * requests;
  return { limits: { ...LIMITS, requests }, maxIdle: Math.min(MAX_IDLE, spare) };
}

/** How many descriptors this process may have. */
export function countDescriptors(): number {
  const { userLimits } = Object(process.report.getReport());
  const limit: unknown = userLimits?.open_files?.soft;
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
