import { Modal, Text, type ModalProps } from "@mantine/core";

interface DialogProps extends Omit<ModalProps, "title" | "closeButtonProps"> {
  readonly title: string;
}

/** Its content is made anew each time it is opened. */
export function Dialog({ title, ...props }: DialogProps) {
  return (
    <Modal
      title={<Text fw={650}>{title}</Text>}
      closeButtonProps={{ "aria-label": "Close" }}
      {...props}
    />
  );
}
