import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient } from "../../api/client.ts";
import { isErased } from "../../api/erased.ts";
import { useApi } from "../../session/session.tsx";
import { textQuery } from "../../ui/text-query.ts";
import { userOptions } from "../users/data.ts";

interface UserSelectProps {
  readonly value: number | undefined;
  readonly error: string | undefined;
  readonly onChange: (id: number | undefined) => void;
}

const TYPING_MS = 250;
const MAX_CHOICES = 20;

const choicesOptions = (api: ApiClient, typed: string) =>
  queryOptions({
    queryKey: ["users", "choices", typed],
    queryFn: async () => {
      const query = { limit: MAX_CHOICES, ...(typed !== "" && textQuery(typed)) };
      return (await answerOf(api.admin.users.get({ query }))).data;
    },
    placeholderData: keepPreviousData,
  });

interface Choice {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

const itemOf = ({ id, name, email }: Choice) => ({ value: String(id), label: `${name}, ${email}` });

/** Selects a user by a part of the name or the email. The server runs the search. */
export function UserSelect({ value, error, onChange }: UserSelectProps) {
  const api = useApi();
  const [search, setSearch] = useState("");
  const chosen = useQuery(userOptions(api, value)).data;
  const isTyped = chosen === undefined || search !== itemOf(chosen).label;
  const [typed] = useDebouncedValue(isTyped ? search.trim() : "", TYPING_MS);
  const found = useQuery(choicesOptions(api, typed)).data ?? [];
  const others = found.filter((one) => one.id !== chosen?.id && !isErased(one));
  return (
    <Select
      label="User"
      placeholder="Type a name or an email"
      required
      searchable
      data-autofocus
      data={[...(chosen === undefined ? [] : [chosen]), ...others].map(itemOf)}
      filter={({ options }) => options}
      nothingFoundMessage="No user has this name or email"
      searchValue={search}
      onSearchChange={setSearch}
      value={value === undefined ? null : String(value)}
      error={error}
      onChange={(id) => onChange(id === null ? undefined : Number(id))}
    />
  );
}
