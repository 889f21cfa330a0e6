import { LinkButton, ErrorText } from "./layout.tsx";
import { Button, Group, PinInput, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useId, useRef, useState, type FormEvent, type RefObject } from "react";

import { fieldError } from "../api/client.ts";
import { ErrorNotice } from "./states.tsx";
import { useCountdown } from "./time.tsx";

const CODE_DIGITS = 6;
/** Space at which a line does not end, so that a number stays with its unit. */
const NO_BREAK = "\u00a0";
/** Time in ms after a mail within which the server sends no further code (contract 4.14). */
const COOLDOWN_MS = 60_000;

interface CodeEntryProps {
  readonly onCode: (code: string) => Promise<void>;
  readonly onResend: () => Promise<void>;
}

/**
 * Field for the six digits of a mailed code, which submits when the last digit is entered. A button requests
 * another code after the server's cooldown.
 */
export function CodeEntry({ onCode, onResend }: CodeEntryProps) {
  const [code, setCode] = useState("");
  const [sentAt, setSentAt] = useState(() => Date.now());
  const first = useRef<HTMLInputElement>(null);
  // One mutation serves both requests, so that a new request clears the error of the previous request.
  const {
    mutate,
    error,
    isPending: isBusy,
  } = useMutation({ mutationFn: (send: () => Promise<void>) => send() });
  const startOver = () => {
    setCode("");
    // Focuses the first field only in the next frame, because the fields are read-only until the request has ended.
    requestAnimationFrame(() => first.current?.focus());
  };
  const submit = (entered: string) => {
    if (entered.length === CODE_DIGITS) mutate(() => onCode(entered), { onError: startOver });
  };
  const enter = (entered: string) => {
    setCode(entered);
    submit(entered);
  };
  const resend = () => mutate(onResend, { onSuccess: () => setSentAt(Date.now()) });
  const isWrong = fieldError(error, "otp") !== undefined;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit(code);
  };
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <CodeField first={first} code={code} onEnter={enter} isWrong={isWrong} isBusy={isBusy} />
        {error !== null && !isWrong && <ErrorNotice error={error} />}
        <Button type="submit" loading={isBusy} disabled={code.length < CODE_DIGITS}>
          Check the code
        </Button>
        <Resend sentAt={sentAt} onResend={resend} />
      </Stack>
    </form>
  );
}

interface CodeFieldProps {
  readonly first: RefObject<HTMLInputElement | null>;
  readonly code: string;
  readonly onEnter: (code: string) => void;
  readonly isWrong: boolean;
  readonly isBusy: boolean;
}

function CodeField({ first, code, onEnter, isWrong, isBusy }: CodeFieldProps) {
  const label = useId();
  return (
    <Stack gap={6}>
      <Text size="sm" fw={500} id={label}>
        Code
      </Text>
      <PinInput
        ref={first}
        aria-labelledby={label}
        length={CODE_DIGITS}
        type="number"
        placeholder=""
        size="md"
        gap="xs"
        // Autofocus is acceptable because the user has just requested the code and will type it next.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        value={code}
        // Submits in `onChange`, because Mantine's `onComplete` does not fire again after a wrong code was cleared.
        onChange={onEnter}
        error={isWrong}
        readOnly={isBusy}
        getInputProps={(index) => ({ "aria-label": `Digit ${index + 1} of ${CODE_DIGITS}` })}
      />
      {isWrong && (
        <ErrorText>
          The code is wrong, expired or already used. Use the code of the newest email, or request
          another one.
        </ErrorText>
      )}
    </Stack>
  );
}

function Resend({ sentAt, onResend }: { readonly sentAt: number; readonly onResend: () => void }) {
  const wait = useCountdown(sentAt + COOLDOWN_MS);
  return (
    <Group justify="center">
      {wait > 0 ? (
        <Text size="sm" c="dimmed" className="tabular">
          No email? You can request another code in{NO_BREAK}
          {wait}
          {NO_BREAK}s.
        </Text>
      ) : (
        <LinkButton onClick={onResend}>Send another code</LinkButton>
      )}
    </Group>
  );
}
