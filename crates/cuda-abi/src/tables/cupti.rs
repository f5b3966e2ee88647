//! CUPTI.

/// Hands the rows of CUPTI to the macro `$with`.
#[macro_export]
macro_rules! for_each_cupti {
    ($with:ident) => {
        $with! {
            accepted cuptiActivityDisable;
            accepted cuptiActivityEnable;
            accepted cuptiActivityEnableCudaEventDeviceTimestamps;
            accepted cuptiActivityEnableDriverApi;
            accepted cuptiActivityEnableRuntimeApi;
            accepted cuptiActivityFlushAll;
            accepted cuptiActivityGetNextRecord;
            accepted cuptiActivityGetNumDroppedRecords;
            accepted cuptiActivityPopExternalCorrelationId;
            accepted cuptiActivityPushExternalCorrelationId;
            accepted cuptiActivityRegisterCallbacks;
            accepted cuptiActivityRegisterTimestampCallback;
            accepted cuptiActivitySetAttribute;
            accepted cuptiEnableCallback;
            accepted cuptiEnableDomain;
            accepted cuptiFinalize;
            accepted cuptiGetCallbackName;
            accepted cuptiGetResultString;
            accepted cuptiGetVersion;
            accepted cuptiSubscribe;
            accepted cuptiUnsubscribe;
        }
    };
}

for_each_cupti!(rows);
