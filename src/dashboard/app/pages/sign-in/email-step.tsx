import { Button, Stack, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { useApi } from "../../session.tsx";
import { fieldError } from "../../ui/explain.ts";
import { Refusal } from "./refusal.tsx";
import { useProblem } from "./wait.ts";

export interface Discovered {
  readonly password: boolean;
  readonly sso: boolean;
}

/** How the domain of the address signs in; nobody is looked up. */
export function EmailStep({
  email,
  onEmail,
  onDiscovered,
}: {
  readonly email: string;
  readonly onEmail: (email: string) => void;
  readonly onDiscovered: (ways: Discovered) => void;
}) {
  const api = useApi();
  const { error, wait, report, dismiss } = useProblem();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    dismiss();
    try {
      onDiscovered(await api.call("POST", "/auth/discover", { body: { email } }));
    } catch (caught) {
      report(caught);
      setBusy(false);
    }
  };
  const isWrong = fieldError(error, "email") !== undefined;
  return (
    <form noValidate onSubmit={(event) => void submit(event)}>
      <Stack>
        <TextInput
          label="Email"
          type="email"
          name="email"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          withAsterisk={false}
          maxLength={254}
          // The page has one purpose.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          value={email}
          onChange={(event) => onEmail(event.currentTarget.value)}
          error={isWrong && "Enter an address such as name@company.com."}
        />
        {error !== undefined && !isWrong && <Refusal error={error} wait={wait} />}
        <Button type="submit" loading={isBusy} disabled={wait > 0}>
          Continue
        </Button>
      </Stack>
    </form>
  );
}
