import { Button } from "@mantine/core";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";
import { useCompanyActions, type CompanyType } from "./data.ts";

interface CompanySwitchProps {
  readonly type: CompanyType;
  readonly company: { readonly id: number; readonly name: string; readonly is_active: boolean };
}

/** Stops a company, or starts it again; asks first, and says what it ends. */
export function CompanySwitch({ type, company }: CompanySwitchProps) {
  const { setActive } = useCompanyActions();
  const { id, name, is_active: isActive } = company;
  const action = isActive ? "Deactivate" : "Activate";
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button size="xs" variant="default" onClick={ask} aria-label={`${action} ${name}`}>
          {action}
        </Button>
      )}
      title={`${action} ${name}?`}
      action={action}
      danger={isActive}
      onConfirm={async () => {
        await setActive(type, id, !isActive);
        notify.done(`${name} is ${isActive ? "inactive: nobody there is signed in" : "active"}.`);
      }}
    >
      {isActive ? ENDS[type] : STARTS[type]}
    </ConfirmedAction>
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
