import { Anchor, Button, Group, PinInput, Stack, Text } from "@mantine/core";
import { useId, useRef, useState, type FormEvent } from "react";

import { fieldError } from "./explain.ts";
import { ErrorNotice } from "./states.tsx";
import { useCountdown } from "./time.tsx";

const DIGITS = 6;
/** decisions.md 2, email OTP: within it the server sends no other. */
const COOLDOWN_MS = 60_000;

/** Six digits from a mail. Sends them when the last one is there; asks for another code no sooner than the server sends one. */
export function CodeEntry({
  onCode,
  onResend,
}: {
  readonly onCode: (code: string) => Promise<void>;
  readonly onResend: () => Promise<void>;
}) {
  const [code, setCode] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [sentAt, setSentAt] = useState(() => Date.now());
  const first = useRef<HTMLInputElement>(null);
  const label = useId();
  const wrong = fieldError(error, "otp");

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (caught) {
      setError(caught);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const submit = async (entered: string) => {
    if (await attempt(() => onCode(entered))) return;
    setCode("");
    // After the fields are free again.
    requestAnimationFrame(() => first.current?.focus());
  };
  const enter = (entered: string) => {
    setCode(entered);
    if (entered.length === DIGITS) void submit(entered);
  };
  const resend = async () => {
    if (await attempt(onResend)) setSentAt(Date.now());
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (code.length === DIGITS) void submit(code);
  };
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <Stack gap={6}>
          <Text size="sm" fw={500} id={label}>
            Code
          </Text>
          <PinInput
            ref={first}
            aria-labelledby={label}
            length={DIGITS}
            type="number"
            placeholder=""
            size="md"
            gap="xs"
            // The person has just asked for the code.
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus
            value={code}
            // Not onComplete, which knows nothing of a code that was cleared after it was wrong.
            onChange={enter}
            error={wrong !== undefined}
            readOnly={isBusy}
            getInputProps={(index) => ({ "aria-label": `Digit ${index + 1} of ${DIGITS}` })}
          />
          {wrong !== undefined && (
            <Text size="sm" c="var(--mantine-color-error)" role="alert">
              That code is wrong, expired or used up. Look for the newest mail, or ask for another.
            </Text>
          )}
        </Stack>
        {error !== undefined && wrong === undefined && <ErrorNotice error={error} />}
        <Button type="submit" loading={isBusy} disabled={code.length < DIGITS}>
          Check the code
        </Button>
        <Resend sentAt={sentAt} onResend={() => void resend()} />
      </Stack>
    </form>
  );
}

function Resend({ sentAt, onResend }: { readonly sentAt: number; readonly onResend: () => void }) {
  const wait = useCountdown(sentAt + COOLDOWN_MS);
  return (
    <Group justify="center">
      {wait > 0 ? (
        <Text size="sm" c="dimmed" className="countdown">
          Nothing there? Another code can be sent in {wait} s.
        </Text>
      ) : (
        <Anchor component="button" type="button" size="sm" onClick={onResend}>
          Send another code
        </Anchor>
      )}
    </Group>
  );
}
