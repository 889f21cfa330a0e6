import { describe, expect, test } from "bun:test";

import {
  decideMail,
  decideUnsent,
  MAIL_RETRY_DELAYS_MS,
  UNREADABLE_DELAY_MS,
  type MailOutcome,
} from "../../../../dispatcher/mail/decide.ts";
import { addMs } from "../../../../src/lib/clock.ts";

describe("every outcome at every attempt", () => {
  for (const attempt of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
    const at = { ...mail, attempt };
    test(`accepted at attempt ${attempt} is sent`, () =>
      expect(decideMail({ kind: "accepted" }, at, now)).toEqual({ kind: "sent" }));
    test(`refused at attempt ${attempt} is dead`, () =>
      expect(decideMail({ kind: "refused", ...fault }, at, now)).toEqual({
        kind: "dead",
        ...fault,
      }));
    test(`broken off at attempt ${attempt} stays as it is`, () =>
      expect(decideMail({ kind: "aborted" }, at, now)).toEqual({ kind: "interrupted" }));
    const minutes = MINUTES[attempt - 1];
    if (minutes === undefined)
      test(`failed at attempt ${attempt} is dead`, () =>
        expect(decideMail(failed, at, now)).toEqual({ kind: "dead", ...fault }));
    else
      test(`failed at attempt ${attempt} is tried again ${minutes} minutes after its end`, () =>
        expect(decideMail(failed, at, now)).toEqual({
          kind: "retry",
          dueAt: addMs(now, minutes * 60_000),
          ...fault,
        }));
  }
});

describe("a mail with an end to its use", () => {
  const until = (ms: number) => ({ ...mail, expiresAt: addMs(now, ms) });

  test("is dead if the retry would come at its expiry or later", () => {
    expect(decideMail(failed, until(60_000), now)).toEqual({ kind: "dead", ...fault });
    expect(decideMail(failed, until(60_001), now).kind).toBe("retry");
  });

  test("is not sent any more from its end on", () => {
    expect(decideUnsent(until(1), now)).toBeUndefined();
    expect(decideUnsent(until(0), now)).toMatchObject({ kind: "dead", errorCode: "expired" });
  });
});

test("a mail that no key opens waits without using up an attempt", () => {
  expect(decideUnsent({ ...mail, readable: false }, now)).toMatchObject({
    kind: "postponed",
    dueAt: addMs(now, UNREADABLE_DELAY_MS),
    errorCode: "unreadable",
  });
});

test("a mail to what is no address is given up at once", () => {
  const unmailable = { ...mail, mailable: false };
  const given = { kind: "dead", errorCode: "bad_address" };
  expect(decideUnsent(unmailable, now)).toMatchObject(given);
});

const now = new Date("2026-06-01T12:00:00.000Z");

const mail = {
  attempt: 1,
  expiresAt: null,
  readable: true,
  mailable: true,
  retryDelaysMs: MAIL_RETRY_DELAYS_MS,
};

const MINUTES = [1, 5, 30, 120, 360, 720, 1_440];

const fault = { errorCode: "smtp_451", lastError: "RCPT TO failed with reply 451." };

const failed: MailOutcome = { kind: "failed", ...fault };
