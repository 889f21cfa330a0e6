import { Alert, Button, Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed, PageLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import { companyOptions, type CompanyType } from "../companies/data.ts";
import {
  type CompanyDeletion,
  deletionsOptions,
  leavingOptions,
  useDeletionActions,
} from "./data.ts";

/** List of the scheduled deletions of companies. */
export function Deletions({ action }: { readonly action: ReactNode }) {
  return (
    <TableList
      list={useList(deletionsOptions(useApi()))}
      noun={["deletion", "deletions"]}
      empty={
        <EmptyState icon="building" title="No company is scheduled for deletion" action={action}>
          A deletion begins after a waiting time, and can be cancelled until then. A company that is
          deleted disappears from this list; the audit log keeps who deleted it.
        </EmptyState>
      }
      table={{
        caption: "Scheduled deletions, the first due first",
        end: "Actions",
        columns: (one) => ({
          Company: (
            <CellText
              title={
                <PageLink href={`/companies/${one.company.id}`} inherit>
                  {one.company.name}
                </PageLink>
              }
            >
              {one.company.type === "partner" ? "Partner, with all its accounts" : "Account"}
            </CellText>
          ),
          State: <StateBadge state={one.state === "waiting" ? "scheduled" : one.state} />,
          Requested: <Time at={one.requested_at} />,
          Begins: (
            <>
              <Time at={one.due_at} mayBeAhead />
              <Dimmed>
                <ExactTime at={one.due_at} />
              </Dimmed>
            </>
          ),
          Actions: <CancelDeletion deletion={one} />,
        }),
      }}
    />
  );
}

function CancelDeletion({ deletion }: { readonly deletion: CompanyDeletion }) {
  const { cancel } = useDeletionActions();
  const { name } = deletion.company;
  if (deletion.state === "running") return <Dimmed>Cannot be cancelled any more</Dimmed>;
  return (
    <ConfirmedAction
      label="Cancel"
      button={{ size: "xs", "aria-label": `Cancel the deletion of ${name}` }}
      title={`Keep ${name}?`}
      action="Cancel the deletion"
      onConfirm={() => cancel(deletion)}
      done={`Deletion of ${name} cancelled.`}
    >
      Everything of {name} stays. It remains deactivated until you activate it.
    </ConfirmedAction>
  );
}

interface DeleteCompanyProps {
  /** Company that the form proposes. */
  readonly companyId?: number | undefined;
  readonly isNew?: boolean;
  readonly onClosed?: () => void;
}

/** Button that opens the form of a deletion, at once if the address names the company or asks for the form. */
export function DeleteCompany({ companyId, isNew = false, ...dialog }: DeleteCompanyProps) {
  return (
    <DialogButton
      label="Delete a company"
      isOpen={isNew || companyId !== undefined}
      button={{ color: "red" }}
      {...dialog}
    >
      {(close) => <ChooseCompany companyId={companyId} onClose={close} />}
    </DialogButton>
  );
}

interface ChooseCompanyProps extends Pick<DeleteCompanyProps, "companyId"> {
  readonly onClose: () => void;
}

function ChooseCompany({ companyId, onClose }: ChooseCompanyProps) {
  const [id, setId] = useState(companyId);
  const company = useQuery(companyOptions(useApi(), id)).data;
  const type = company?.type;
  return (
    <>
      <CompanySelect
        label="Company"
        types={["partner", "account"]}
        required
        isFirst={companyId === undefined}
        value={id}
        onChange={(next) => setId(next?.id)}
      />
      {id !== undefined && (type === "partner" || type === "account") && (
        <ConfirmDeletion key={id} type={type} id={id} onClose={onClose} />
      )}
    </>
  );
}

interface LeavingProps {
  readonly type: CompanyType;
  readonly id: number;
  readonly onClose: () => void;
}

function ConfirmDeletion({ type, id, onClose }: LeavingProps) {
  const company = useQuery(leavingOptions(useApi(), type, id));
  return (
    <Loaded query={company}>
      {({ name, is_active: isActive }) =>
        isActive ? (
          <Alert mt="md" color="yellow" icon={<Icon name="alert" />} title={`${name} is active`}>
            Deactivate it first: its users are signed out and no webhook is sent any more. Then come
            back here.{" "}
            <PageLink href={`/companies/${id}`} inherit underline="always">
              Open {name}
            </PageLink>
          </Alert>
        ) : (
          <DeletionForm type={type} id={id} name={name} onClose={onClose} />
        )
      }
    </Loaded>
  );
}

function DeletionForm({ type, id, name, onClose }: LeavingProps & { readonly name: string }) {
  const { request } = useDeletionActions();
  const form = useForm({
    initial: { name: "" },
    send: (draft) => request(type, id, draft.name),
    done: `Deletion of ${name} scheduled.`,
    onDone: onClose,
  });
  return (
    <Form
      form={form}
      buttons={
        <Group justify="flex-end" className="dialog-buttons">
          <Button variant="default" onClick={onClose} disabled={form.isBusy}>
            Cancel
          </Button>
          <SubmitButton form={form} color="red" isReady={form.draft.name === name}>
            Schedule the deletion
          </SubmitButton>
        </Group>
      }
    >
      <Alert mt="md" color="red" icon={<Icon name="alert" />} title="What will be deleted">
        <ul>
          {type === "partner" && <li>its webhook subscriptions and all its accounts</li>}
          <li>reviews, events, deliveries and connections to review sites</li>
          <li>stores, users, OAuth clients and single sign-on connections</li>
        </ul>
        <Text size="sm" mt="xs">
          It begins after a waiting time, usually 30 days, and can be cancelled until then. The
          audit log stays, without addresses and texts.
        </Text>
      </Alert>
      <TextInput
        label={`Type “${name}” to confirm`}
        autoComplete="off"
        required
        {...form.text("name")}
      />
    </Form>
  );
}
