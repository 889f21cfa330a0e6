import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { LiveBadge, StateSummary } from "../../ui/badges.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { ActionButton, ConfirmedAction, Dialog, useRowDialog } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { counted, number } from "../../ui/format.ts";
import { CellText, Dimmed, Facts, PageHeader, PageLink, PageTabs } from "../../ui/layout.tsx";
import { rowsOf, TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { Icon } from "../../ui/icon.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { ExactTime, Time, useNow } from "../../ui/time.tsx";
import { CompanyName } from "../companies/company-select.tsx";
import { serviceOptions } from "../services/data.ts";
import { nameOf, partsOf, shortReason } from "./action-parts.ts";
import {
  type InboxAction,
  inboxOptions,
  type InboxState,
  type Retries,
  useInboxActions,
  useInboxStatus,
  useIsStuck,
  useRetries,
} from "./data.ts";
import { Selected, SelectRow, useSelection } from "./selected.tsx";

export function Page() {
  const { get, set } = useFilters(["tab"]);
  const status = useInboxStatus();
  return (
    <>
      <PageHeader
        title="Inbox"
        description="Services that share the database insert their actions here, and the API records each within seconds. An invalid action is set aside, and the others continue."
        actions={
          <LiveBadge state={status.isError ? "waiting" : "live"}>
            {status.isError ? "Reconnecting…" : "Updates every few seconds"}
          </LiveBadge>
        }
      />
      <Loaded query={status}>{(data) => <Summary status={data} />}</Loaded>
      <PageTabs
        value={get("tab") === "waiting" ? "waiting" : "rejected"}
        onChange={(tab) => set({ tab: tab === "waiting" ? tab : undefined })}
        tabs={{
          rejected: {
            title: withCount("Rejected", status.data?.rejected),
            content: <Actions state="rejected" />,
          },
          waiting: {
            title: withCount("Waiting", status.data?.waiting),
            content: <Actions state="waiting" />,
          },
        }}
      />
    </>
  );
}

const withCount = (title: string, count = 0) =>
  count === 0 ? title : `${title} (${number(count)})`;

/** Number of actions up to which the server counts (contract 9.8). */
const MAX_COUNTED = 10_000;
const actions = (count: number) =>
  `${count >= MAX_COUNTED ? "At least " : ""}${counted(count, "action")}`;
const TICK_MS = 10_000;

interface SummaryProps {
  readonly status: {
    readonly waiting: number;
    readonly rejected: number;
    readonly oldest_waiting_at: string | null;
  };
}

function Summary({ status: { waiting, rejected, oldest_waiting_at: oldest } }: SummaryProps) {
  const isStuck = useIsStuck(oldest, useNow(TICK_MS));
  return (
    <Stack mb="md">
      <StateSummary
        isWell={rejected === 0 && !isStuck}
        title={rejected === 0 ? "No problems" : `${actions(rejected)} rejected`}
      >
        {waiting === 0 ? (
          "Nothing is waiting."
        ) : (
          <>
            {actions(waiting)} waiting. The oldest was inserted <Time at={oldest} />.
          </>
        )}
        {isStuck &&
          " It has not moved for a minute. Check that the API is running: it takes over the actions."}
      </StateSummary>
    </Stack>
  );
}

function Actions({ state }: { readonly state: InboxState }) {
  const shown = useRowDialog<InboxAction>();
  const { row } = shown.dialog;
  const isRejected = state === "rejected";
  const list = useList(inboxOptions(useApi(), state));
  const selection = useSelection(rowsOf(list));
  return (
    <>
      {isRejected && <Selected selection={selection} />}
      <TableList
        list={list}
        empty={
          <EmptyState icon="inbox" title={isRejected ? "No rejected action" : "No waiting action"}>
            {isRejected
              ? "Actions that cannot be recorded appear here, with the reasons."
              : "Actions that are not recorded yet appear here, usually for less than a second."}
          </EmptyState>
        }
        table={{
          caption: `${isRejected ? "Rejected" : "Waiting"} actions, oldest first`,
          end: "Actions",
          columns: (one) => ({
            ...(isRejected && { Select: <SelectRow action={one} selection={selection} /> }),
            ...columnsOf(one, () => shown.show(one)),
          }),
        }}
      />
      <Dialog
        {...shown.dialog}
        title={row === undefined ? "" : titled(nameOf(row.action, row.position))}
        size="lg"
      >
        {row && <Content action={row} onEnd={shown.dialog.onClose} />}
      </Dialog>
    </>
  );
}

const titled = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/** Shows an action as the service inserted it, and why it was rejected. */
function Content({ action: one, onEnd }: ActionButtonsProps) {
  const { action, errors } = one;
  return (
    <Stack>
      <Facts
        facts={[
          ["Row", String(one.position)],
          ["Service", <Origin key="service" action={one} />],
          ["Inserted", <ExactTime key="inserted" at={one.inserted_at} />],
        ]}
      />
      {errors !== null && (
        <Alert color="red" icon={<Icon name="alert" />} title="Why it was rejected">
          <Problems errors={errors} hasValues />
          <Text size="sm" mt="xs">
            If the action itself is wrong, its service must insert a corrected one; then delete this
            one. Retry it if the cause was outside of the action, for example a record that did not
            exist yet.
          </Text>
        </Alert>
      )}
      {action === null ? (
        <Text size="sm">The action is larger than 1 MiB and is not shown.</Text>
      ) : (
        <CodeBlock label="Action" code={JSON.stringify(action, null, 2)} wraps isJson />
      )}
      <ActionButtons action={one} onEnd={onEnd} />
    </Stack>
  );
}

/** Returns the end of a long id, which differs even between ids of the same second. The dialog shows all of it. */
const shortId = (id: string) =>
  id.length <= SHOWN_ID_CHARS ? id : `…${id.slice(-SHOWN_ID_CHARS)}`;
const SHOWN_ID_CHARS = 12;

function columnsOf(one: InboxAction, onShow: () => void) {
  const { event, id } = partsOf(one.action);
  return {
    Action: (
      <CellText title={event}>
        {id === "" ? `Row ${one.position}` : <code title={id}>{shortId(id)}</code>}
      </CellText>
    ),
    Service: <Origin action={one} />,
    Inserted: <Time at={one.inserted_at} />,
    ...(one.state === "rejected" && { Problem: <Rejection action={one} /> }),
    Actions: <ActionButtons action={one} onShow={onShow} />,
  };
}

/** Shows the service that inserted an action, and the partner that the action belongs to. */
function Origin({ action: one }: { readonly action: InboxAction }) {
  return (
    <>
      <ServiceLink id={one.service_id} />
      {one.partner_id !== 0 && (
        <Dimmed size="sm">
          for{" "}
          <PageLink href={`/companies/${one.partner_id}`} inherit>
            <CompanyName id={one.partner_id} />
          </PageLink>
        </Dimmed>
      )}
    </>
  );
}

function ServiceLink({ id }: { readonly id: number }) {
  const { data } = useQuery(serviceOptions(useApi(), id));
  if (data === undefined) return String(id);
  return (
    <div data-name>
      <PageLink href={`/services/${id}`}>{data.name}</PageLink>
    </div>
  );
}

/** Shows why an action was rejected, and how often it was retried. */
function Rejection({ action }: { readonly action: InboxAction }) {
  const retries = useRetries(action);
  return (
    <>
      <Problems errors={action.errors} />
      {retries && (
        <Dimmed>
          {timesRetried(retries)} <Time at={retries.last} />
        </Dimmed>
      )}
    </>
  );
}

function timesRetried({ times }: Retries): string {
  if (times === null) return "Last retried";
  return times === 1 ? "Retried once," : `Retried ${times} times, last`;
}

interface ProblemsProps {
  readonly errors: InboxAction["errors"];
  /** True if a long list of allowed values can be opened. */
  readonly hasValues?: boolean;
}

function Problems({ errors, hasValues = false }: ProblemsProps) {
  return Object.entries(errors ?? {}).map(([field, reason]) => {
    const { text, values } = shortReason(reason);
    return (
      <Text key={field} component="div" size="sm" data-name>
        <code>{field}</code> {text}
        {hasValues && values.length > 0 && (
          <details>
            <summary>Allowed values</summary>
            {values.join(", ")}
          </details>
        )}
      </Text>
    );
  });
}

interface ActionButtonsProps {
  readonly action: InboxAction;
  /** Opens the dialog with the whole action; absent in this dialog. */
  readonly onShow?: () => void;
  /** Called once the action has left the list. */
  readonly onEnd?: (() => void) | undefined;
}

function ActionButtons({ action, onShow, onEnd }: ActionButtonsProps) {
  const { retry, drop } = useInboxActions();
  const { position, state } = action;
  const name = nameOf(action.action, position);
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      {onShow && (
        <Button size="xs" variant="default" onClick={onShow} aria-label={`Show ${name}`}>
          Show
        </Button>
      )}
      {state === "rejected" && (
        <ActionButton
          label="Retry"
          fullLabel={`Retry ${name}`}
          onClick={() => retry(position).then(onEnd)}
          done="Action sent again. If it fails again, it comes back with the reason."
        />
      )}
      <ConfirmedAction
        label="Delete"
        button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Delete ${name}` }}
        title={`Delete ${name}?`}
        action="Delete action"
        danger
        onConfirm={() => drop(position).then(onEnd)}
        done="Action deleted."
      >
        It is never recorded, no webhook is sent for it, and the service is not told. This cannot be
        undone. If the service inserts it again, it is taken as a new action.
      </ConfirmedAction>
    </Group>
  );
}
