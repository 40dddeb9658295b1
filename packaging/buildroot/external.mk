include $(sort $(wildcard $(BR2_EXTERNAL_LATENZ_PATH)/package/*/*.mk))
