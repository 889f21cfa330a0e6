import { Alert, VisuallyHidden } from "@mantine/core";
import { useEffect, useRef, useState } from "react";

import { apiErrorOf } from "../../api/client.ts";
import { useCredentials } from "../../session/credentials.ts";
import { useSessionState } from "../../session/session.tsx";
import type { SsoCallback } from "../../session/single-sign-on.ts";
import { errorMessageOf } from "../../ui/error-message.ts";
import { counted, minutes } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";

/** Message above the sign-in form that appears before the user enters anything. */
export interface Notice {
  readonly title: string;
  readonly advice: string;
  readonly isError: boolean;
}

/** Returns the message above the sign-in form: the result of an SSO flow, or the reason why the last session ended. */
export function useNotice() {
  const { ssoCallback, ended } = useSessionState();
  const { isExchanging, failure } = useCodeExchange();
  const [isDismissed, setDismissed] = useState(false);
  const ofFlow = failure === undefined ? ofCallback(ssoCallback) : ofFailure(failure);
  const notice = ended === undefined ? ofFlow : NOTICE_BY_REASON[ended];
  const dismiss = () => setDismissed(true);
  const restore = () => setDismissed(false);
  return { notice: isDismissed ? undefined : notice, isExchanging, dismiss, restore };
}

/**
 * Exchanges the code of an SSO callback for a session. A ref prevents a second request, because the API accepts
 * a code only once.
 */
function useCodeExchange() {
  const { ssoCallback, signIn } = useSessionState();
  const { exchangeCode } = useCredentials();
  const [failure, setFailure] = useState<unknown>();
  const isBegun = useRef(false);
  const isExchanging = ssoCallback.kind === "code" && failure === undefined;
  useEffect(() => {
    if (ssoCallback.kind !== "code" || isBegun.current) return;
    isBegun.current = true;
    const { code, flow } = ssoCallback;
    exchangeCode(code, flow.verifier)
      .then((session) => signIn(session, { remember: flow.remember }))
      .catch(setFailure);
  }, [ssoCallback, exchangeCode, signIn]);
  return { isExchanging, failure };
}

const NOTICE_BY_REASON = {
  expired: {
    title: "You were signed out",
    advice: "Your session expired after 24 hours or was ended elsewhere. Sign in to continue.",
    isError: false,
  },
  signed_out: { title: "You are signed out", advice: "See you soon.", isError: false },
  unconfirmed: {
    title: "You are signed out here",
    advice:
      "The server could not be reached, so your session may stay valid for up to 24 hours. To end it, sign in again and open Security.",
    isError: true,
  },
  again: {
    title: "Sign in again",
    advice: "You then return to the same page.",
    isError: false,
  },
  too_late: {
    title: "You are not signed in yet",
    advice:
      "The second step took too long, or too many wrong codes were entered. Start again with your password.",
    isError: true,
  },
} as const satisfies Record<string, Notice>;

function ofCallback(ssoCallback: SsoCallback): Notice | undefined {
  if (ssoCallback.kind === "rejected")
    return {
      title: "Single sign-on did not work",
      advice:
        "Your company's identity provider rejected the sign-in. Try again. If the problem persists, ask the administrator of your company's accounts.",
      isError: true,
    };
  if (ssoCallback.kind === "unexpected")
    return {
      title: "Nobody was signed in",
      advice:
        "The sign-in was not started in this tab and was rejected, because it could belong to somebody else. Start again here.",
      isError: true,
    };
  return undefined;
}

function ofFailure(error: unknown): Notice {
  if (apiErrorOf(error)?.code === "invalid_code")
    return {
      title: "Single sign-on did not work",
      advice: "The sign-in took longer than a minute, or its link was already used. Try again.",
      isError: true,
    };
  const { title, advice } = errorMessageOf(error);
  return { title, advice, isError: true };
}

interface SignInErrorProps {
  readonly error: unknown;
  /** Seconds until the server accepts another sign-in. */
  readonly wait: number;
}

/** Explains why a sign-in failed. The text discloses no more than the API's error. */
export function SignInError({ error, wait }: SignInErrorProps) {
  const answer = apiErrorOf(error);
  if (answer?.status === 429)
    return (
      <Wait isLock={answer.code === "account_locked"} whole={answer.retryAfterS} wait={wait} />
    );
  if (answer?.code !== "invalid_credentials") return <ErrorNotice error={error} />;
  return (
    <Alert color="red" role="alert" icon={<Icon name="alert" />} title="Wrong email or password">
      After five wrong passwords in a row, you cannot sign in for some time.
    </Alert>
  );
}

interface WaitProps {
  readonly isLock: boolean;
  /** Seconds of the whole wait, as the server returned them in `Retry-After`. */
  readonly whole: number | undefined;
  readonly wait: number;
}

/**
 * Shows a countdown until the server accepts another sign-in. Screen readers announce the total wait and the end of
 * the wait, but not each second.
 */
function Wait({ isLock, whole, wait }: WaitProps) {
  if (wait === 0)
    return (
      <Alert color="teal" component="output" icon={<Icon name="check" />}>
        You can try again now.
      </Alert>
    );
  return (
    <Alert
      color={isLock ? "red" : "yellow"}
      role="alert"
      icon={<Icon name={isLock ? "lock" : "clock"} />}
      title={isLock ? "Sign-in is locked" : "Too many requests"}
    >
      {isLock ? "Too many wrong passwords were entered for this address. " : ""}
      You can try again in{" "}
      <span aria-hidden className="tabular">
        {minutes(wait)}
      </span>
      <VisuallyHidden>{counted(whole ?? wait, "second")}</VisuallyHidden>.
    </Alert>
  );
}
