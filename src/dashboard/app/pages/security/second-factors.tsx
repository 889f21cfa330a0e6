import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import type { DataOf } from "../../api/client.ts";
import { type Factor, factorRequests, factorsOptions, type NewFactor } from "../../factors/data.ts";
import { NewApp, NewPasskey } from "../../factors/new-factor.tsx";
import { hasPasskeys, passkeyHostOptions } from "../../factors/data.ts";
import { RecoveryCodesDialog } from "../../factors/recovery-codes.tsx";
import { useApi } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Section } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { useRefresh } from "../../ui/pages.ts";
import { Loaded } from "../../ui/states.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";

type Factors = DataOf<typeof factorsOptions>;
type Kind = Factor["kind"];

const TITLES = { totp: "Add an authenticator app", passkey: "Add a passkey" } as const;
const KINDS = { totp: "Authenticator app", passkey: "Passkey" } as const;

/** Lists the user's second factors and recovery codes, and changes them. */
export function SecondFactorsSection() {
  const api = useApi();
  const factors = useQuery(factorsOptions(api));
  const { refresh } = useRefresh(factorsOptions(api).queryKey);
  const [adding, setAdding] = useState<Kind>();
  const [codes, setCodes] = useState<readonly string[]>();
  const stop = () => setAdding(undefined);
  const show = ({ factor, recovery_codes: made }: NewFactor) => {
    stop();
    setCodes(made ?? undefined);
    notify.done(`${factor.name} added.`);
    void refresh();
  };
  const given = { api, onAdded: show, onCancel: stop };
  const obstacle = usePasskeyObstacle();
  return (
    <Section
      title="Two-step verification"
      description={`${descriptionOf(factors.data)} ${obstacle ?? ""}`}
      actions={factors.data && <AddButtons factors={factors.data} onAdd={setAdding} />}
    >
      <Loaded query={factors}>
        {(own) =>
          own.factors.length > 0 && (
            <Stack>
              <DataTable
                caption="Second factors"
                rows={own.factors}
                rowKey={({ id }) => id}
                end="Actions"
                columns={(one) => ({
                  ...factorColumns(one),
                  Actions: <RemoveFactor factor={one} isOnly={own.factors.length === 1} />,
                })}
              />
              <RecoveryCodesLeft left={own.recovery_codes_left} onCodes={setCodes} />
            </Stack>
          )
        }
      </Loaded>
      <Dialog
        opened={adding !== undefined}
        onClose={stop}
        title={TITLES[adding ?? "totp"]}
        centered
      >
        {adding === "totp" && <NewApp {...given} />}
        {adding === "passkey" && <NewPasskey {...given} />}
      </Dialog>
      <RecoveryCodesDialog codes={codes} onClose={() => setCodes(undefined)} />
    </Section>
  );
}

/** Returns the cells of a second factor by column, for its user and for operators. */
export const factorColumns = (one: Factor): Readonly<Record<string, ReactNode>> => ({
  Factor: (
    <CellText title={one.name}>
      {one.name === KINDS[one.kind] ? undefined : KINDS[one.kind]}
    </CellText>
  ),
  Added: <ExactTime at={one.created_at} />,
  "Last used": <LastUsed at={one.last_used_at} />,
});

function descriptionOf(factors: Factors | undefined): string {
  const what =
    "Protect your sign-in with a passkey or an authenticator app in addition to your password.";
  if (factors?.is_required) return `${what} Your company requires it.`;
  return factors?.factors.length === 0
    ? `${what} Without it, anyone who knows your password can sign in.`
    : what;
}

/** Returns why no passkey can be added on this page; undefined if one can. */
function usePasskeyObstacle(): string | undefined {
  const { data: host = location.hostname } = useQuery(passkeyHostOptions);
  if (!`.${location.hostname}`.endsWith(`.${host}`)) return `Passkeys can be added at ${host}.`;
  return hasPasskeys()
    ? undefined
    : "Passkeys need HTTPS and a host name in the address of this page.";
}

interface AddButtonsProps {
  readonly factors: Factors;
  readonly onAdd: (kind: Kind) => void;
}

function AddButtons({ factors: { factors }, onAdd }: AddButtonsProps) {
  const obstacle = usePasskeyObstacle();
  return (
    <Group gap="xs">
      {obstacle === undefined && (
        <Button variant="default" onClick={() => onAdd("passkey")}>
          Add passkey
        </Button>
      )}
      {factors.every(({ kind }) => kind !== "totp") && (
        <Button variant="default" onClick={() => onAdd("totp")}>
          Add authenticator app
        </Button>
      )}
    </Group>
  );
}

interface RemoveFactorProps {
  readonly factor: Factor;
  readonly isOnly: boolean;
}

function RemoveFactor({ factor: { id, name }, isOnly }: RemoveFactorProps) {
  const api = useApi();
  const { andRead } = useRefresh(factorsOptions(api).queryKey);
  return (
    <ConfirmedAction
      label="Remove"
      button={{ size: "xs", "aria-label": `Remove ${name}` }}
      title={`Remove ${name}?`}
      action="Remove"
      danger
      onConfirm={() => andRead(factorRequests(api).remove(id))}
      done={`${name} removed.`}
    >
      {isOnly
        ? "This is your only factor. Your recovery codes are deleted as well, and you sign in with your password only."
        : "It can no longer be used to sign in."}
    </ConfirmedAction>
  );
}

/** The page warns if the user has this number of recovery codes left, or fewer. */
const FEW_CODES = 3;

interface RecoveryCodesLeftProps {
  readonly left: number;
  readonly onCodes: (codes: readonly string[]) => void;
}

function RecoveryCodesLeft({ left, onCodes }: RecoveryCodesLeftProps) {
  const api = useApi();
  const { inBackground } = useRefresh(factorsOptions(api).queryKey);
  const renew = async () => onCodes(await inBackground(factorRequests(api).renewRecoveryCodes()));
  const isFew = left <= FEW_CODES;
  return (
    <Alert
      role="note"
      color={isFew ? "yellow" : "gray"}
      icon={<Icon name={isFew ? "alert" : "list"} />}
      title={`${counted(left, "recovery code")} left`}
    >
      <Stack gap="sm" align="flex-start">
        <Text size="sm">
          {isFew
            ? "Create new ones before you run out. Without codes and factors, only an operator can restore your access."
            : "Each code works once if you lose your other factors."}
        </Text>
        <ConfirmedAction
          label="Create new codes"
          button={{ size: "xs" }}
          title="Create new recovery codes?"
          action="Create new codes"
          onConfirm={renew}
        >
          You get ten new codes. The current ones stop working.
        </ConfirmedAction>
      </Stack>
    </Alert>
  );
}
