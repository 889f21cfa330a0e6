import { Button, Checkbox, Paper, PasswordInput, Stack, TextInput, Title } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { useSessionState } from "../../session.tsx";
import { ErrorNotice } from "../../ui/states.tsx";

export function SignIn() {
  const { api, signIn } = useSessionState();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [remember, setRemember] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      const session = await api.call("POST", "/login", {
        body: { email, password, rememberMe: remember },
      });
      signIn(session, { remember });
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <main className="sign-in">
      <Paper withBorder p="lg" component="form" onSubmit={(event) => void submit(event)}>
        <Stack>
          <Title order={1} size="h3">
            Sign in
          </Title>
          <TextInput
            label="Email"
            type="email"
            autoComplete="username"
            required
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Checkbox
            label="Remember me in this tab"
            checked={remember}
            onChange={(event) => setRemember(event.currentTarget.checked)}
          />
          {error !== undefined && <ErrorNotice error={error} />}
          <Button type="submit">Sign in</Button>
        </Stack>
      </Paper>
    </main>
  );
}
