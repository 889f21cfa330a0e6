import { Stepper } from "@mantine/core";

import { Icon } from "../../ui/icon.tsx";

import "@mantine/core/styles/Stepper.css";

interface CreationStepsProps {
  readonly active: number;
  /** It is undefined once the subscription exists: then there is no way back. */
  readonly onStep?: (step: number) => void;
}

/** Shows how far somebody is on the way to a new subscription. */
export function CreationSteps({ active, onStep }: CreationStepsProps) {
  const isDone = onStep === undefined;
  return (
    <Stepper
      active={active}
      {...(onStep && { onStepClick: onStep })}
      size="sm"
      wrap={false}
      className="creation-steps"
      completedIcon={<Icon name="check" size={16} />}
      mb="lg"
      maw={760}
    >
      <Stepper.Step label="Endpoint" disabled={isDone} />
      <Stepper.Step label="Events" disabled={isDone} />
      <Stepper.Step label="Verify" {...(!isDone && { allowStepSelect: false })} />
    </Stepper>
  );
}
