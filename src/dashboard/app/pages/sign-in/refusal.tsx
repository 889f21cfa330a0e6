import { Alert, VisuallyHidden } from "@mantine/core";

import { problemOf } from "../../ui/explain.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { minutes } from "../../ui/time.tsx";
import { counted } from "../../ui/words.ts";

/** Why somebody is not let in, in words that say no more than the server does. */
export function Refusal({ error, wait }: { readonly error: unknown; readonly wait: number }) {
  const problem = problemOf(error);
  if (problem?.status === 429)
    return (
      <Wait isLock={problem.code === "account_locked"} whole={problem.retryAfterS} wait={wait} />
    );
  if (problem?.code !== "invalid_credentials") return <ErrorNotice error={error} />;
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      icon={<Icon name="alert" />}
      title="Wrong email or password"
    >
      Five wrong passwords in a row lock the sign-in for a while.
    </Alert>
  );
}

/** Ticks for the eye; a screen reader hears the whole wait once, and once more that it is over. */
function Wait({
  isLock,
  whole,
  wait,
}: {
  readonly isLock: boolean;
  readonly whole: number | undefined;
  readonly wait: number;
}) {
  if (wait === 0)
    return (
      <Alert color="teal" variant="light" component="output" icon={<Icon name="check" />}>
        You can try again now.
      </Alert>
    );
  return (
    <Alert
      color={isLock ? "red" : "yellow"}
      variant="light"
      role="alert"
      icon={<Icon name={isLock ? "lock" : "clock"} />}
      title={isLock ? "Sign-in is locked for a while" : "Too many requests"}
    >
      {isLock ? "There were too many wrong passwords for this address. " : ""}
      You can try again in{" "}
      <span aria-hidden className="countdown">
        {minutes(wait)}
      </span>
      <VisuallyHidden>{counted(whole ?? wait, "second")}</VisuallyHidden>.
    </Alert>
  );
}
