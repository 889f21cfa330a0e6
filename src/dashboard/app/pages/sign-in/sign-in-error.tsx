import { Alert, VisuallyHidden } from "@mantine/core";

import { apiErrorOf } from "../../api/api-error.ts";
import { counted } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { minutes } from "../../ui/instants.ts";

interface SignInErrorProps {
  readonly error: unknown;
  /** The seconds until the server takes another try. */
  readonly wait: number;
}

/** Says why somebody is not let in, in words that say no more than the server does. */
export function SignInError({ error, wait }: SignInErrorProps) {
  const answer = apiErrorOf(error);
  if (answer?.status === 429)
    return (
      <Wait isLock={answer.code === "account_locked"} whole={answer.retryAfterS} wait={wait} />
    );
  if (answer?.code !== "invalid_credentials") return <ErrorNotice error={error} />;
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

interface WaitProps {
  readonly isLock: boolean;
  /** The seconds that the server said. */
  readonly whole: number | undefined;
  readonly wait: number;
}

/** Ticks for the eyes; screen readers say the whole wait once, and once more that it is over. */
function Wait({ isLock, whole, wait }: WaitProps) {
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
      <span aria-hidden className="tabular">
        {minutes(wait)}
      </span>
      <VisuallyHidden>{counted(whole ?? wait, "second")}</VisuallyHidden>.
    </Alert>
  );
}
