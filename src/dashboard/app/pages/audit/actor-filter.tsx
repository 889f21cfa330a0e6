import { CloseButton, TextInput } from "@mantine/core";
import { useState } from "react";

import { explain } from "../../ui/explain.ts";
import { idOf } from "../../ui/ids.ts";
import { useFindByEmail, useUser } from "../users/data.ts";

interface ActorFilterProps {
  readonly value: number | undefined;
  readonly onChange: (id: string | undefined) => void;
}

/** Filters by who did it; takes an email, which Enter looks up, or the number of a user. */
export function ActorFilter({ value, onChange }: ActorFilterProps) {
  const { data: chosen } = useUser(value ?? null);
  const [typed, setTyped] = useState<string>();
  const { error, find } = useActorSearch(onChange);
  const apply = async () => {
    if (typed === undefined) return;
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

/** Turns an email or a number into the number of a user; the error says why there is none. */
function useActorSearch(onFound: (id: string | undefined) => void) {
  const findByEmail = useFindByEmail();
  const [error, setError] = useState<string>();
  const find = async (text: string) => {
    setError(undefined);
    if (text === "") return onFound(undefined);
    const id = idOf(text);
    if (id !== undefined) return onFound(String(id));
    try {
      const user = await findByEmail(text);
      if (user === undefined) return setError("Nobody has this email.");
      onFound(String(user.id));
    } catch (caught) {
      setError(explain(caught).title);
    }
  };
  return { error, find };
}
