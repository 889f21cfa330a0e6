import { Type } from "@sinclair/typebox";

import { checkedByHandler } from "../http/fields.ts";
import { orNull, receiving } from "../http/text.ts";
import { type Fields, isRecord } from "../lib/fields.ts";

/** The limits of the headers of a subscription (contract 6.22); characters are ASCII and count as bytes. */
const LIMITS = { count: 10, nameChars: 64, valueChars: 1_024, bytes: 4_096 } as const;

const headerValue = Type.String({ minLength: 1, maxLength: LIMITS.valueChars });

/** The headers in the body of a request. `headersError` checks them, because its errors contain no value. */
export const ownHeaders = receiving(
  checkedByHandler(
    orNull(Type.Record(Type.String(), headerValue, { maxProperties: LIMITS.count }), {
      title: "SubscriptionHeaders",
      description:
        "Headers that each POST carries, for example the key of a gateway. They replace the present ones; null or `{}` for none. No response shows a value.",
      examples: [{ "X-Api-Key": "6f1d0c4b9e" }],
    }),
  ),
);

const HEADER_NAME = /^(?!\d+$)[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/**
 * The names that only the service sets, those of the connection (RFC 9110, 7.6.1), `Cookie` and `Expect`. They are
 * compared with `-` for `_`, because CGI gives both the same variable (RFC 3875, 4.1.18).
 */
const RESERVED_HEADER =
  /^(?:x-svc-.*|webhook-.*|user-agent|host|content-.*|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|cookie|expect)$/i;

/** Checks the headers of a subscription (contract 6.22). The error contains no value. */
export function headersError(headers: unknown): string | undefined {
  if (headers === undefined || headers === null) return undefined;
  if (!isRecord(headers)) return "must be null, or an object with a value for each header name";
  const { count, nameChars, valueChars, bytes } = LIMITS;
  const given = Object.entries(headers);
  if (given.length > count) return `must have at most ${count} headers`;
  const seen = new Set<string>();
  let total = 0;
  for (const [i, [name, value]] of given.entries()) {
    if (name.length > nameChars || !HEADER_NAME.test(name))
      return `has an invalid name at index ${i}: it must be a token of 1 to ${nameChars} characters, and not a number`;
    if (RESERVED_HEADER.test(name.replaceAll("_", "-")))
      return `must not have ${name}, which is reserved`;
    if (seen.has(name.toLowerCase())) return `has ${name} twice; case does not count`;
    seen.add(name.toLowerCase());
    if (typeof value !== "string" || value.length > valueChars || !HEADER_VALUE.test(value))
      return `has an invalid value of ${name}: it must be 1 to ${valueChars} visible ASCII characters, with spaces and tabs only inside`;
    total += name.length + value.length;
  }
  return total > bytes ? `must have at most ${bytes} bytes of names and values` : undefined;
}

/**
 * Checks that an update which moves a subscription with headers to another URL has the headers, too (contract 6.22).
 * Otherwise a caller that never saw the values could have them sent to an endpoint of its own.
 */
export function movedHeadersError(
  current: { readonly webhookUrl: string; readonly headerNames: readonly string[] },
  { webhook_url: url, headers }: Fields,
): string | undefined {
  const isMoved = typeof url === "string" && url !== current.webhookUrl;
  const isCovered = current.headerNames.length === 0 || headers !== undefined;
  return isMoved && !isCovered
    ? "must be sent again, or be null, because webhook_url changes"
    : undefined;
}
