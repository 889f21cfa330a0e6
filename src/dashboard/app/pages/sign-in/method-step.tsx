import { Anchor, Button, Divider, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState, type FormEvent } from "react";

import { BASE_URL, useSessionState } from "../../session.tsx";
import { kept } from "../../kept.ts";
import { newChallenge } from "../../single-sign-on.ts";
import { Icon } from "../../ui/icon.tsx";
import type { Discovered } from "./email-step.tsx";
import { Refusal } from "./refusal.tsx";
import { Remember } from "./remember.tsx";
import { useProblem } from "./wait.ts";

interface MethodProps {
  readonly email: string;
  readonly remember: boolean;
  readonly onRemember: (remember: boolean) => void;
  readonly ways: Discovered;
  readonly onOtherEmail: () => void;
  readonly onForgotten: () => void;
}

/** What the company of the address offers: a password, its identity provider, or both. */
export function MethodStep(props: MethodProps) {
  const { ways, email, remember, onRemember } = props;
  return (
    <Stack>
      {ways.password ? (
        <PasswordForm {...props} />
      ) : (
        <>
          <ChosenEmail {...props} />
          <Text size="sm">Your company signs in through its own identity provider.</Text>
          <Remember value={remember} onChange={onRemember} />
        </>
      )}
      {ways.password && ways.sso && <Divider label="or" />}
      {ways.sso && <SingleSignOn email={email} remember={remember} isOnlyWay={!ways.password} />}
    </Stack>
  );
}

function ChosenEmail({ email, onOtherEmail }: Pick<MethodProps, "email" | "onOtherEmail">) {
  return (
    <TextInput
      label="Email"
      name="email"
      autoComplete="username"
      readOnly
      value={email}
      rightSectionWidth={80}
      rightSection={
        <Button variant="subtle" size="compact-sm" onClick={onOtherEmail}>
          Change
        </Button>
      }
    />
  );
}

function PasswordForm(props: MethodProps) {
  const { email, remember, onRemember, onForgotten } = props;
  const { api, signIn } = useSessionState();
  const [password, setPassword] = useState("");
  const { error, wait, report, dismiss } = useProblem();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isFree = wait === 0 && !isBusy;
  useEffect(() => {
    // At the first look, after a wrong password, and when a lock has ended.
    if (isFree) field.current?.focus();
  }, [isFree]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isFree) return;
    setBusy(true);
    dismiss();
    try {
      const body = { email, password, rememberMe: remember };
      signIn(await api.call("POST", "/login", { body }), { remember });
    } catch (caught) {
      report(caught);
      setPassword("");
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <ChosenEmail {...props} />
        <PasswordInput
          ref={field}
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          maxLength={128}
          visibilityToggleFocusable
          disabled={wait > 0}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Remember value={remember} onChange={onRemember} />
        {error !== undefined && <Refusal error={error} wait={wait} />}
        <Button type="submit" loading={isBusy} disabled={wait > 0}>
          Sign in
        </Button>
        <Anchor component="button" type="button" size="sm" onClick={onForgotten}>
          Forgot your password?
        </Anchor>
      </Stack>
    </form>
  );
}

/** Off to the identity provider, with a challenge whose verifier stays in this tab. */
function SingleSignOn({
  email,
  remember,
  isOnlyWay,
}: Pick<MethodProps, "email" | "remember"> & { readonly isOnlyWay: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const begin = async () => {
    setBusy(true);
    const place = await leaveFor({ email, remember });
    if (place !== undefined) return location.assign(place);
    setBusy(false);
    setProblem(
      "This needs a secure connection (https) and a browser that may keep data for this page.",
    );
  };
  return (
    <>
      <Button
        variant={isOnlyWay ? "filled" : "default"}
        leftSection={<Icon name="building" />}
        loading={isBusy}
        // The button before it is gone.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus={isOnlyWay}
        onClick={() => void begin()}
      >
        Continue with single sign-on
      </Button>
      {problem !== undefined && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          {problem}
        </Text>
      )}
    </>
  );
}

async function leaveFor({ email, remember }: { email: string; remember: boolean }) {
  try {
    const { verifier, challenge } = await newChallenge();
    const path = location.pathname + location.search;
    if (!kept.write("reviewrelay.sso", { verifier, email, remember, path })) return undefined;
    const query = new URLSearchParams({
      email,
      code_challenge: challenge,
      code_challenge_method: "S256",
    });
    return `${BASE_URL}/auth/sso/redirect?${query.toString()}`;
  } catch {
    // Browsers hash for secure pages only.
    return undefined;
  }
}
