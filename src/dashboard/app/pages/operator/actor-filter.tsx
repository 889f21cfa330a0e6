import { CloseButton, TextInput } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { explain } from "../../ui/explain.ts";
import { idOf } from "../../ui/ids.ts";
import { useUser } from "./data.ts";

interface Props {
  readonly value: number | undefined;
  readonly onChange: (id: string | undefined) => void;
}

/** Who did it, by email or number; Enter looks for the email. */
export function ActorFilter({ value, onChange }: Props) {
  const api = useApi();
  const { data: chosen } = useUser(value ?? null);
  const [typed, setTyped] = useState<string>();
  const [error, setError] = useState<string>();
  const find = async (text: string) => {
    if (text === "") return onChange(undefined);
    const id = idOf(text);
    if (id !== undefined) return onChange(String(id));
    try {
      const { data } = await api.call("GET", "/admin/users", { query: { email: text } });
      const [user] = data;
      if (user === undefined) return setError("Nobody has this email.");
      onChange(String(user.id));
    } catch (caught) {
      setError(explain(caught).title);
    }
  };
  const apply = async () => {
    if (typed === undefined) return;
    setError(undefined);
    await find(typed.trim());
    setTyped(undefined);
  };
  const shown = value === undefined ? "" : (chosen?.email ?? String(value));
  return (
    <TextInput
      label="Who"
      placeholder="Email or number"
      value={typed ?? shown}
      error={error}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Enter" && void apply()}
      onBlur={() => void apply()}
      rightSection={
        value !== undefined && (
          <CloseButton
            size="sm"
            aria-label="Clear who"
            onClick={() => {
              setTyped(undefined);
              onChange(undefined);
            }}
          />
        )
      }
    />
  );
}
