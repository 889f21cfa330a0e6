import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";

interface Props {
  readonly type: "partner" | "account";
  readonly company: { readonly id: number; readonly name: string; readonly is_active: boolean };
}

/** Stops a company, or starts it again; asks first, and says what it ends. */
export function CompanySwitch({ type, company }: Props) {
  const api = useApi();
  const queries = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const { id, name, is_active: isActive } = company;
  const change = async () => {
    const request = { params: { id: String(id) } };
    if (type === "partner")
      await api.call(
        "POST",
        `/admin/partners/:id/${isActive ? "deactivate" : "activate"}`,
        request,
      );
    else
      await api.call(
        "POST",
        `/admin/accounts/:id/${isActive ? "deactivate" : "activate"}`,
        request,
      );
    await queries.invalidateQueries({ queryKey: [`${type}s`] });
    notify.done(`${name} is ${isActive ? "inactive: nobody there is signed in" : "active"}.`);
  };
  return (
    <>
      <Button
        size="xs"
        variant="default"
        onClick={() => setAsking(true)}
        aria-label={`${isActive ? "Deactivate" : "Activate"} ${name}`}
      >
        {isActive ? "Deactivate" : "Activate"}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={`${isActive ? "Deactivate" : "Activate"} ${name}?`}
        action={isActive ? "Deactivate" : "Activate"}
        danger={isActive}
        onConfirm={change}
      >
        {isActive ? ENDS[type] : STARTS[type]}
      </Confirm>
    </>
  );
}

const ENDS = {
  partner:
    "Everybody at the partner and at each of its accounts is signed out at once, and cannot sign in. Their tokens and API keys end for good, those of clients that act for them too. Reviews still arrive and are kept.",
  account:
    "Everybody at the account is signed out at once, and cannot sign in. Their tokens and API keys end for good. Reviews still arrive and are kept.",
} as const;

const STARTS = {
  partner:
    "Its people, and those of its active accounts, can sign in again. Tokens and API keys of before stay ended: they make new ones.",
  account:
    "Its people can sign in again. Tokens and API keys of before stay ended: they make new ones.",
} as const;
