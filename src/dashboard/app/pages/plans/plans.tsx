import { Button, Code, Group, TagsInput, TextInput } from "@mantine/core";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";
import { apiErrorOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { BreakableText } from "../../ui/badges.tsx";
import {
  ConfirmedAction,
  Dialog,
  DialogButton,
  type OpenedByLink,
  useRowDialog,
} from "../../ui/dialog.tsx";
import { useOpenedByLink } from "../../ui/filters.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { counted, number } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader, PageLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { type Plan, type PlanDraft, planListOptions, usePlanActions } from "./data.ts";

export function Page() {
  const editing = useRowDialog<Plan>();
  const { row, onClose } = editing.dialog;
  return (
    <>
      <PageHeader
        title="Plans"
        description="Each account has a plan. The plan names the features that the account may use; the platform's own programs read them after the sign-in."
        actions={<NewPlan {...useOpenedByLink()} />}
      />
      <TableList
        list={useList(planListOptions(useApi()))}
        noun={["plan", "plans"]}
        empty={
          <EmptyState icon="catalog" title="No plans yet" action={<NewPlan />}>
            Create a plan before the first account.
          </EmptyState>
        }
        table={{
          caption: "Plans, newest first",
          end: "Actions",
          columns: (one) => ({
            Name: <CellText title={one.name}>ID {one.id}</CellText>,
            Accounts: <Accounts plan={one} />,
            Features: <Features features={one.features} />,
            Actions: <PlanActions plan={one} onEdit={() => editing.show(one)} />,
          }),
        }}
      />
      <Dialog {...editing.dialog} title={`Edit ${row?.name ?? ""}`} size="lg">
        {row && <PlanForm plan={row} onClose={onClose} />}
      </Dialog>
    </>
  );
}

function NewPlan(opened: OpenedByLink) {
  return (
    <DialogButton label="New plan" {...opened}>
      {(close) => <PlanForm onClose={close} />}
    </DialogButton>
  );
}

/** Number of accounts with a plan, which leads to the list of them. */
function Accounts({ plan: { id, name, accounts = 0 } }: { readonly plan: Plan }) {
  if (accounts === 0) return <Dimmed size="sm">None</Dimmed>;
  return (
    <PageLink
      href={`/companies?tab=accounts&plan=${id}`}
      aria-label={`${counted(accounts, "account")} with the plan ${name}`}
    >
      {number(accounts)}
    </PageLink>
  );
}

function Features({ features }: Pick<Plan, "features">) {
  if (features.length === 0) return <Dimmed size="sm">None</Dimmed>;
  return (
    <Group gap={4}>
      {features.map((one) => (
        <Code key={one}>
          <BreakableText text={one} />
        </Code>
      ))}
    </Group>
  );
}

interface PlanActionsProps {
  readonly plan: Plan;
  readonly onEdit: () => void;
}

function PlanActions({ plan: { id, name, accounts = 0 }, onEdit }: PlanActionsProps) {
  const { remove } = usePlanActions();
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      <Button size="xs" variant="default" onClick={onEdit} aria-label={`Edit ${name}`}>
        Edit
      </Button>
      <ConfirmedAction
        label="Delete"
        button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Delete ${name}` }}
        title={`Delete ${name}?`}
        action="Delete plan"
        danger
        isReady={accounts === 0}
        onConfirm={() => remove(id)}
        done={`${name} deleted.`}
        refusalOf={(error) =>
          apiErrorOf(error)?.code === "in_use"
            ? `At least one account has the plan ${name}. Give each of them another plan first, on the account's page.`
            : undefined
        }
      >
        New accounts cannot get this plan any more. A plan that an account has cannot be deleted.
      </ConfirmedAction>
    </Group>
  );
}

const EMPTY_PLAN: PlanDraft = { name: "", features: [] };

interface PlanFormProps {
  /** Plan that the form edits; undefined to create one. */
  readonly plan?: Plan;
  readonly onClose: () => void;
}

function PlanForm({ plan, onClose }: PlanFormProps) {
  const { create, change } = usePlanActions();
  const form = useForm<PlanDraft, Plan>({
    ...(plan === undefined && { name: "new plan" }),
    initial: plan ?? EMPTY_PLAN,
    send: (draft: PlanDraft) => (plan === undefined ? create(draft) : change(plan.id, draft)),
    done: ({ name }) => `${name} ${plan === undefined ? "created" : "saved"}.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action={plan === undefined ? "Create plan" : "Save"} onCancel={onClose}>
      <TextInput label="Name" required data-autofocus {...form.text("name")} />
      <TagsInput
        label="Features"
        description="Names that the platform's programs know: a-z, 0-9 and _. Press Enter after each."
        value={[...form.draft.features]}
        error={form.errorOf("features")}
        acceptValueOnBlur
        onChange={(features) => form.edit({ features })}
      />
    </Form>
  );
}
