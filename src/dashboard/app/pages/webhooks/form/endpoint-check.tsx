import { Alert, Button, Group, Loader, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";

import { FINDING_RULES } from "../../../../../outbox/check-findings.ts";
import { Dialog } from "../../../ui/dialog.tsx";
import { counted, milliseconds, sentence } from "../../../ui/format.ts";
import { Icon, type IconName } from "../../../ui/icon.tsx";
import { Dimmed, GuideLink } from "../../../ui/layout.tsx";
import { ErrorNotice } from "../../../ui/states.tsx";
import { Time } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import {
  type CheckFinding,
  checkOptions,
  type CheckReport,
  newestCheckOptions,
  type SubscriptionProps,
} from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { diagnosisOf } from "../deliveries/attempt-words.ts";
import css from "./form.module.css";

/** Button that opens a dialog with the check of the endpoint. */
export function CheckButton({ subscription }: SubscriptionProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" onClick={open} leftSection={<Icon name="shield" size={16} />}>
        Check endpoint
      </Button>
      <Dialog opened={opened} onClose={close} title="Check your endpoint" size="lg">
        <Text size="sm" mb="md">
          We send up to ten test requests, valid ones and forged ones, which show whether your
          endpoint follows each of our rules. Nothing is retried, and your deliveries go on as
          usual. <GuideLink guide="going-live#check-your-endpoint">Guide</GuideLink>
        </Text>
        {subscription.is_active ? (
          <EndpointCheck id={subscription.id} variant="filled" />
        ) : (
          <Text size="sm">A subscription that is disabled cannot be checked.</Text>
        )}
      </Dialog>
    </>
  );
}

/** Returns the report of the newest check that this page has requested; undefined before the first one. */
export function useNewestCheck(id: string): CheckReport | undefined {
  const { data: checkId = null } = useQuery(newestCheckOptions(id));
  const options = checkOptions(useReader(), id, checkId ?? "");
  return useQuery({ ...options, enabled: checkId !== null }).data;
}

interface EndpointCheckProps {
  /** Id of the subscription. */
  readonly id: string;
  readonly variant?: "filled" | "default";
}

/** Checks the endpoint when the user asks for it, and shows the report. */
export function EndpointCheck({ id, variant = "default" }: EndpointCheckProps) {
  const { requestCheck } = useSubscriptionActions(id);
  const { mutate, error, isPending } = useMutation({ mutationFn: requestCheck });
  const report = useNewestCheck(id);
  const isRunning = report !== undefined && report.finished_at === null;
  return (
    <Stack gap="sm">
      <Group>
        <Button
          data-autofocus
          onClick={() => mutate()}
          loading={isPending || isRunning}
          variant={report === undefined ? variant : "default"}
        >
          {report === undefined ? "Start the check" : "Check again"}
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      <div aria-live="polite">{report !== undefined && <Report report={report} />}</div>
    </Stack>
  );
}

interface ReportProps {
  readonly report: CheckReport;
}

function Report({ report }: ReportProps) {
  const { state, finished_at: finishedAt } = report;
  if (finishedAt === null)
    return (
      <Group gap="sm" wrap="nowrap">
        <Loader size="sm" />
        <Text size="sm">
          {state === "pending"
            ? "The check starts in a moment…"
            : "The check is running. It takes a few seconds, or longer if your endpoint is slow…"}
        </Text>
      </Group>
    );
  return (
    <Stack gap="sm">
      {state === "done" ? <Result report={report} /> : <Interruption report={report} />}
      <Dimmed>
        Checked <Time at={finishedAt} />
      </Dimmed>
    </Stack>
  );
}

/** Explains why a check ended without a report, by its reason. */
const INTERRUPTIONS: Readonly<Record<string, string>> = {
  process_ended: "Our service was restarted during the check. Start it again.",
  subscription_changed:
    "The subscription was changed during the check, so the requests would not fit together. Start it again.",
  secret_unreadable: "We cannot read the secret of the subscription. Contact support.",
  own_failure:
    "A request failed because of a part of ours, not because of your endpoint. Try again later.",
};

function Interruption({ report: { reason } }: ReportProps) {
  return (
    <Alert color="yellow" icon={<Icon name="alert" />} title="The check was interrupted">
      {INTERRUPTIONS[reason ?? ""] ?? "Start it again."}
    </Alert>
  );
}

const isFault = ({ passed, severity }: CheckFinding) => passed === false && severity === "fault";
const isWarning = ({ passed, severity }: CheckFinding) => passed === false && severity !== "fault";

/** Shows the result of a check: what to change first, then all other rules. */
function Result({ report: { findings } }: ReportProps) {
  const faults = findings.filter(isFault);
  const warnings = findings.filter(isWarning);
  const undecided = findings.filter(({ passed }) => passed === null);
  const passed = findings.filter((one) => one.passed === true);
  const isWell = faults.length === 0;
  const others = [
    ...(warnings.length > 0 ? [counted(warnings.length, "warning")] : []),
    ...(undecided.length > 0 ? [`${undecided.length} not decided`] : []),
    `${counted(passed.length, "rule")} passed`,
  ];
  return (
    <Stack gap="sm">
      <Alert
        color={isWell ? "teal" : "red"}
        icon={<Icon name={isWell ? "check" : "alert"} />}
        title={isWell ? "No faults found" : `${counted(faults.length, "fault")} found`}
      >
        {others.join(", ")}.
      </Alert>
      <Findings title="To change" findings={[...faults, ...warnings]} icon="x" />
      <Findings title="Not decided, because of another finding" findings={undecided} icon="pause" />
      <Findings title="Passed" findings={passed} icon="check" />
    </Stack>
  );
}

const RULES = new Map<string, (typeof FINDING_RULES)[number]>(
  FINDING_RULES.map((one) => [one.code, one]),
);

/** Says what happened at a rule that failed, and names any other rule. */
function findingInWords({ code, passed }: CheckFinding): string {
  const { rule, failure } = RULES.get(code) ?? { rule: sentence(code), failure: sentence(code) };
  return passed === false ? failure : rule;
}

interface FindingsProps {
  readonly title: string;
  readonly findings: readonly CheckFinding[];
  readonly icon: IconName;
}

/** Lists findings in words, with the response that decides each that failed, and what to change. */
function Findings({ title, findings, icon }: FindingsProps) {
  if (findings.length === 0) return null;
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {title}
      </Text>
      <ul className={css.findings} aria-label={title}>
        {findings.map((one) => (
          <li key={one.code} data-passed={one.passed} data-severity={one.severity}>
            <Icon name={icon} size={16} />
            <div>
              <Text size="sm" {...(one.passed === false && { fw: 600 })}>
                {findingInWords(one)}
              </Text>
              {one.passed === false && <Change finding={one} />}
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Change({ finding }: { readonly finding: CheckFinding }) {
  const { status_code: status, error_code: code, duration_ms: ms, advice } = finding;
  return (
    <>
      {(status !== null || code !== null) && (
        <Dimmed>
          Answer: {diagnosisOf({ outcome: "failed", ...finding }).title}
          {ms !== null && `, after ${milliseconds(ms)}`}
        </Dimmed>
      )}
      {advice !== null && <Text size="sm">{advice}</Text>}
    </>
  );
}
