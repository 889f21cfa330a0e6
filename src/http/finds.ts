import type { CheckContext } from "./checks.ts";
import { exchangeOf, signedIn } from "./exchange.ts";
import type { Caller } from "./principal.ts";

/**
 * A macro that looks up the record which the path names, scoped to the caller, and hands it to the handler by this
 * name. It throws `not_found` or `forbidden`, which come before any fault of the fields.
 */
export function finds<const N extends string, T>(
  name: N,
  find: (input: Sought) => Promise<T>,
): Record<N, FindMacro<N, T>> {
  const macro: FindMacro<N, T> = {
    async transform({ request, params }) {
      const exchange = exchangeOf(request);
      exchange.found[name] = await find({ ...signedIn(exchange), params });
    },
    resolve({ request }) {
      // The transform above put it there.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return { [name]: exchangeOf(request).found[name] } as Record<N, T>;
    },
  };
  // A computed key widens to string.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { [name]: macro } as Record<N, FindMacro<N, T>>;
}

interface Sought extends Caller {
  readonly params: Readonly<Record<string, string>>;
}

interface FindMacro<N extends string, T> {
  transform(context: Pick<CheckContext, "request" | "params">): Promise<void>;
  resolve(context: Pick<CheckContext, "request">): Record<N, T>;
}
